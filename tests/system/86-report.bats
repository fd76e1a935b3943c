# attune report: one page of a run folder; what it says, what it escapes, that it asks for nothing, and
# how a browser shows it.
# bats file_tags=cpu
load setup

late=$ATTUNE_ROOT/tests/data/runs/late-rank
h200=$ATTUNE_ROOT/examples/report/h200

# A file-size limit fails writes as a full disk does, without needing one.
short_of_room() { # BLOCKS-OF-1024 COMMAND...
    (trap '' XFSZ && ulimit -f "$1" && shift && "$@")
}

# many FOLDER COUNT: a run of so many tasks over five communicators, 60 trials each, whose names try
# to become markup. The run has not finished.
many() {
    mkdir -p "$1"
    jq -n --argjson n "$2" '
        def hostile: "<img src=x onerror=alert(1)>\"'"'"'&{{run}}</script>\u0001";
        def setting(p; c): {algorithm: "ring", protocol: p, transport: "keep", channels: c, threads: 0, chunk: 0};
        {version: 1, attune: "0.1.0", nccl_version: 23007, state: "running", device: hostile,
         coverage: {decisions: 1000000, timed: 930000, called: 7, answered: 6, unsent: 5, untimed: {off: 60000, "<b>x</b>": 10000}, dropped: 5},
         cost: {lost_us: 3e7, run_us: 6e8}, agent: {cpu_share: 0.02},
         tasks: [range($n) | {group: "0x\(. % 5)", ranks: 8, nodes: 1, collective: (["allreduce", "allgather",
            "reducescatter", "broadcast", "reduce"][. / 5 % 5 | floor]), bytes: (1024 * (. + 1)), phase: "settled",
            kept_default: (. % 4 == 0), reason: hostile, trials: 60, calls: 300, lost_us: (. * 100),
            gain_lower: 0.1, default: {setting: setting("simple"; 8), median_us: (20 + .), samples: 28},
            tuned: {setting: setting("ll128"; 21), median_us: ((20 + .) / 1.2), samples: 28}}]}' >"$1/tasks.json"
    jq -c '.tasks[] | . as $t | range(60) | {group: $t.group, collective: $t.collective, bytes: $t.bytes,
        trial: (. + 1), phase: (if . == 0 then "baseline" else "search" end), outcome: "ok", calls: 3,
        setting: $t.tuned.setting, baseline_us: $t.default.median_us,
        median_us: ($t.default.median_us * (if . == 0 then 1 else (0.8 + (. * 37 % 60) / 50) end))}' \
        "$1/tasks.json" >"$1/trials.jsonl"
    jq -n '"<img src=x onerror=alert(1)>\"'"'"'&{{run}}</script>" as $h | {version: 1, run_id: $h, host: $h,
        command: ["mpirun", $h], options: {($h): $h}, environment: {($h): $h}, started: $h,
        sidecar: {program: $h}}' >"$1/manifest.json"
    printf '<script>alert(1)</script>\n\001' >"$1/environment.txt"
}

# --- what a browser makes of it -------------------------------------------------------------------
browser() {
    local found=
    for found in chromium-headless-shell chromium google-chrome; do
        command -v $found >/dev/null && break
        found=
    done
    [ -n "$found" ] || skip "no chromium-headless-shell or chromium"
    timeout 60 "$found" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
        --user-data-dir="$CASE_DIR/browser" --virtual-time-budget=5000 "$@" 2>browser.log
}
# page_check PAGE OPTION...: tests/system/page_check.js, run inside the page.
page_check() {
    local page=$1
    shift
    { sed 's#<meta http-equiv="Content-Security-Policy"[^>]*>##' "$page"
      echo '<script>' && cat "$ATTUNE_ROOT/tests/system/page_check.js" && echo '</script>'; } >checked.html
    browser "$@" --dump-dom "file://$PWD/checked.html" >dom.html
    sed -n '/PAGE-CHECK/,/PAGE-END/p' dom.html | sed '1d;$d'
}
dark=--blink-settings=preferredColorScheme=0
light=--blink-settings=preferredColorScheme=1
# What the page asked any network for: addresses, one a line.
asked() {
    browser --log-net-log="$PWD/net.json" --dump-dom "file://$PWD/$1" >dom.html
    jq -r '[.events[] | .params // {} | (.url // .host // empty) | tostring | select(startswith("file:") | not)] |
        unique | .[]' net.json
}

@test "a run of the repository: the page, and the same as JSON" {
    run attune report "$late" -o page.html
    expect_status 0
    [ -z "$output" ] || fail "says something"
    attune report "$late" --json >report.json
    jq -e '.version == 1 and .run == "late-rank" and .state == "finished" and .summary.tuned == 1 and
        (.summary.speedup_geometric_mean * 1000 | round) == 1108 and .tasks[0].verdict == "tuned" and
        .tasks[0].default.setting == "ring/simple ch=8" and (.tasks[0].curve | length) >= 3 and
        .stragglers.groups[0].named[0].rank == 2 and .coverage.calls == 2408 and .checks.mismatches == 0 and
        .provenance.command[2] == "attune" and ([.search.by_phase[].trials] | add) == 13' report.json
    grep -q '1\.108×' page.html
    grep -q 'Rank 2</strong> (node 0, .*) was 5\.00 ms late in 100 collectives' page.html
    grep -q 'ring/ll128 ch=39 chunk=32640' page.html
    run attune report "$late" -o -
    [ "$output" = "$(cat page.html)" ] || fail "another page on standard output"
}

@test "the real run: files compressed, what is absent is said and nothing is made up" {
    attune report "$h200" -o page.html
    attune report "$h200" --json | jq -e '.summary == (.summary | .tasks = 9 | .tuned = 9) and
        .machine.nccl == "2.30.7" and (.notes | contains("NVIDIA H200")) and .stragglers == null and
        .provenance == null and ([.missing[].what] | length) == 3'
    grep -q 'the folder has no manifest.json' page.html
    grep -q 'no calls were recorded one by one' page.html
    [ "$(grep -c '<figure class="curve"' page.html)" -eq 9 ]
    cmp page.html "$h200/../h200.html" || fail "the example in the tree is another page: make it again"
}

@test "folders of which something is left" {
    mkdir tasks trials manifest trace cut empty
    cp "$late/tasks.json" tasks/
    cp "$late/trials.jsonl" trials/
    cp "$late/manifest.json" manifest/
    cp -r "$late/trace" trace/
    cp "$late/tasks.json" cut/
    head -c 3000 "$late/trials.jsonl" >cut/trials.jsonl
    local folder
    for folder in tasks trials manifest trace cut; do
        run attune report $folder -o $folder.html
        expect_status 0
        grep -q '</html>' $folder.html
        attune report $folder --json >$folder.json
        [ "$(jq '.missing | length > 0' $folder.json)" = true ] || fail "$folder: nothing is missing"
    done
    jq -e '.tasks == null and (.missing[0].why | contains("tasks.json"))' trials.json
    jq -e '.stragglers.groups[0].named[0].rank == 2' trace.json
    jq -e '[.missing[].what] | index("some trials") != null' cut.json
    run --separate-stderr attune report empty -o x.html
    expect_status 6
    expect_one_line 'no file of a run in it'
    run --separate-stderr attune report nowhere -o x.html
    expect_status 6
    expect_one_line 'nowhere: No such file'
    run --separate-stderr attune report tasks.html -o x.html
    expect_status 3
    head -c 500 "$late/tasks.json" >tasks/tasks.json
    run --separate-stderr attune report tasks -o x.html
    expect_status 3
    expect_one_line 'tasks/tasks.json: no JSON'
    sed 's/"version": 1/"version": 9/' "$late/tasks.json" >tasks/tasks.json
    run --separate-stderr attune report tasks -o x.html
    expect_status 7
    echo '{"version":1' >cut/manifest.json
    attune report cut --json | jq -e '[.missing[].why] | any(startswith("manifest.json: no JSON"))'
    [ ! -e x.html ]
    run --separate-stderr attune report "$late"
    expect_status 2
    expect_one_line 'where to'
    run --separate-stderr attune report "$late" "$h200" -o x.html
    expect_status 2
    run --separate-stderr attune report
    expect_status 2
    run --separate-stderr short_of_room 4 attune report "$late" -o x.html
    expect_status 4
    expect_one_line 'cannot write x.html: File too large'
    [ ! -e x.html ] && [ ! -e x.html.tmp ]
}

@test "hostile names, and 500 tasks: escaped, and the page stays small" {
    many 'x<b>"&' 500
    attune report 'x<b>"&' -o many.html
    [ "$(stat -c %s many.html)" -lt 1500000 ] || fail "$(stat -c %s many.html) bytes"
    # One script, one style, no other markup than the templates': what came in came out as text.
    [ "$(grep -o '<script' many.html | wc -l)" -eq 1 ]
    [ "$(grep -o '</script' many.html | wc -l)" -eq 1 ]
    [ "$(grep -Eo '<(img|b>x)' many.html | wc -l)" -eq 0 ]
    [ "$(grep -Eo ' on[a-z]+=' many.html | grep -vc 'onerror=')" -eq 0 ]
    grep -q '&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;{{run}}&lt;/script&gt;' many.html
    grep -q '<title>x&lt;b&gt;&quot;&amp; – attune report</title>' many.html
    ! LC_ALL=C grep -q $'\001' many.html || fail "control characters"
    [ "$(grep -c '<figure class="curve"' many.html)" -eq 500 ]
    awk '/<svg/ { at = 1; n = 0 } at { n += length($0) } /<\/svg>/ { at = 0; if (n > 8000) exit 1 }' many.html
    grep -q 'that the next agent did not take</th><td class="n">5<' many.html
    # By the way it says that the run has not ended.
    grep -q 'not finished' many.html
}

@test "counters: totals, rates and their course, what was switched off and what is not there" {
    mkdir -p run/counters
    cp "$late/tasks.json" run/
    {
        echo '{"version":1,"node":3,"host":"<b>n3</b>","budget":0.001,"units":"..."}'
        echo '{"unavailable":"nvml","reason":"no <i>library</i>"}'
        echo '{"source":0,"name":"process 0","scope":"process","read_us":80.6,"events":["task-clock","page-faults"],"levels":[],"process":0,"pid":77}'
        echo '{"source":1,"name":"nvml","scope":"node","read_us":900,"events":["power"],"levels":["power"]}'
        echo '{"time_s":1,"values":{"0":[1000,5],"1":[300]}}'
        echo '{"time_s":2,"values":{"0":[2000,5],"1":[400]},"iteration":7}'
        echo '{"source":1,"state":"off","reason":"dear"}'
        echo '{"time_s":4,"values":{"0":[8000,6],"9":[1],"1":"x"}}'
        echo '{"end":true,"run_s":4,"spent_us":100,"share":0.000025}'
        printf '{"time_s":5,"val'
    } >run/counters/node-0003.jsonl
    attune report run --json | jq -e '.counters.unreadable == 1 and (.counters.nodes[0] | .node == 3 and .share == 0.000025 and
        .unavailable == [{name: "nvml", reason: "no <i>library</i>"}] and (.sources[0] | .reads == 3 and
        .events[0].total == 8000 and (.events[0].mean * 3 | round) == 7000 and .events[0].most == 3000 and
        (.events[0].course | length) == 2 and .events[1].most == 0.5) and (.sources[1] | .state == "off" and
        .events[0].level and .events[0].mean == 400 and .events[0].total == null)) and
        (.files | index("counters/node-0003.jsonl")) != null'
    attune report run -o page.html
    grep -q 'nvml: off: dear' page.html
    grep -q 'Node 3, &lt;b&gt;n3&lt;/b&gt;' page.html
    ! grep -q '(finished)' page.html || fail "the state of the run stands at a source"
    # Compressed, and without counters.
    gzip run/counters/node-0003.jsonl
    attune report run --json | jq -e '.counters.nodes[0].sources[0].reads == 3'
    rm -r run/counters
    attune report run --json | jq -e '.counters == null and ([.missing[] | select(.what == "counters") | .how] == ["attune run --counters on -- COMMAND"])'
}

@test "no page has an address, a foreign script or a handler in it" {
    attune report "$late" -o late.html
    for page in late.html; do
        ! grep -Eo '(src|href|action|data|poster)="[^#"][^"]*"' "$page" || fail "an address"
        ! grep -Eio '@import|url\(|https?://|//[a-z]' "$page" || fail "an address"
        ! grep -Eo '<(link|iframe|object|embed|base|form|audio|video)' "$page" || fail "foreign content"
        grep -q "default-src 'none'" "$page"
        # The script that the page allows is the one that it has.
        [ "$(sed -n "s/.*script-src '\(sha256-[^']*\)'.*/\1/p" "$page")" = "sha256-$(
            awk '/^<script>/ { at = 1; sub(/^<script>/, "") } /^<\/script>/ { at = 0 } at' "$page" |
                openssl dgst -sha256 -binary | base64)" ] || fail "the script's digest"
    done
}

@test "in a browser: nothing is asked of a network, and a page that would ask is found out" {
    attune report "$late" -o page.html
    run asked page.html
    expect_status 0
    [ -z "$output" ] || fail "asked for something"
    sed 's#</body>#<img src="http://x.invalid/y.png"></body>#; s#<meta http-equiv[^>]*>##' page.html >bad.html
    run asked bad.html
    expect_output 'x\.invalid'
    # The page's own policy forbids it.
    sed 's#</body>#<img src="http://x.invalid/y.png"></body>#' page.html >bad.html
    run asked bad.html
    [ -z "$output" ] || fail "the policy did not hold"
}

@test "in a browser: accessible, wide in light and narrow in dark" {
    attune report "$late" -o late.html
    run page_check late.html $light --window-size=1200,900
    expect_output '^good: light'
    run page_check late.html $dark --window-size=400,900
    expect_output '^good: dark'
    # It would find a fault.
    sed 's/ scope="col"//; s/<h2/<h4/; s#</h2>#</h4>#; s/--muted: #[0-9a-f]*/--muted: #c0c0c0/' late.html >bad.html
    run page_check bad.html $light
    expect_output 'no scope'
    expect_output 'contrast 1\.'
    expect_output 'skips a level'
}

# bats test_tags=long
@test "in a browser: accessible with the real run and with 60 tasks" {
    many many 60
    attune report "$h200" -o h200.html
    attune report many -o many.html
    local page
    for page in h200 many; do
        run page_check $page.html $dark --window-size=1200,900
        expect_output '^good: dark'
        run page_check $page.html $light --window-size=400,900
        expect_output '^good: light'
    done
}

@test "in a browser: the filter leaves what was asked for, and a click on a head sorts" {
    many many 60
    attune report many -o page.html
    { sed 's#<meta http-equiv="Content-Security-Policy"[^>]*>##' page.html && cat <<'END'; } >tried.html
<script>
addEventListener("load", () => {
  const all = (q) => [...document.querySelectorAll(q)], input = document.getElementById("filter");
  const count = () => all("#tasks tbody tr:not([hidden])").length;
  const say = [count()];
  for (const text of ["reducescatter KiB", "nothing like it", ""]) {
    input.value = text;
    input.dispatchEvent(new Event("input"));
    say.push(count() + (text === "reducescatter KiB" ? "/" + all("figure.curve:not([hidden])").length : ""));
  }
  const head = all("#tasks thead th").findIndex((th) => th.textContent === "before");
  const first = () => all("#tasks tbody tr")[0].cells[head].textContent;
  const button = all("#tasks thead th")[head].querySelector("button");
  button.click();
  say.push(first(), all("#tasks thead th")[head].getAttribute("aria-sort"));
  button.click();
  say.push(first());
  document.body.textContent = "SAID " + say.join(", ") + " END";
});
</script>
END
    run browser --dump-dom "file://$PWD/tried.html"
    expect_output 'SAID 60, 10/10, 0, 60, 20\.00 µs, ascending, 79\.00 µs END'
}

@test "in a browser: hostile names stay text" {
    many many 20
    attune report many -o page.html
    browser --dump-dom "file://$PWD/page.html" >dom.html
    [ "$(grep -o '<img' dom.html | wc -l)" -eq 0 ]
    [ "$(grep -o '<script' dom.html | wc -l)" -eq 1 ]
}

# bats test_tags=long
@test "in a browser: pictures in light and dark, on paper, with 500 tasks" {
    many many 500
    attune report "$late" -o late.html
    attune report many -o many.html
    browser $light --window-size=1200,1600 --screenshot="$PWD/light.png" "file://$PWD/late.html"
    browser $dark --window-size=1200,1600 --screenshot="$PWD/dark.png" "file://$PWD/late.html"
    browser --window-size=1200,2400 --screenshot="$PWD/many.png" "file://$PWD/many.html"
    browser --no-pdf-header-footer --print-to-pdf="$PWD/late.pdf" "file://$PWD/late.html"
    local picture
    for picture in light dark many; do
        [ "$(stat -c %s $picture.png)" -gt 60000 ] || fail "$picture.png shows next to nothing"
    done
    ! cmp -s light.png dark.png || fail "dark is as light"
    grep -aq '%PDF' late.pdf && grep -aqE '/Type ?/Page\b' late.pdf || fail "no pages on paper"
    # For people to look at.
    [ ! -d "$ATTUNE_BUILD/results" ] || cp ./*.png late.pdf "$ATTUNE_BUILD/results/"
}
