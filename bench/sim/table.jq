# jq -r -f bench/sim/table.jq build/sim/suite.json: the suite's outcome as Markdown.
def percent: if . == null then "-" else (. * 10000 | round / 100 | tostring) + " %" end;
def whole: if . == null then "never" else (. | round | tostring) end;
def geomean: map(1 + . | log) | add / length | exp - 1;
def rows_of($held): [.rows[] | select(.held_out == $held)];

"Verdict on `\(.verdict.strategy)`, \(.verdict.surfaces) surfaces (tasks and loads), of which " +
"\(.verdict.surfaces_held_out) held out:", "",
"| promise | kept | held out |", "|---|---|---|",
(.verdict as $v | {"gap_at_descent_stop": "gap at the descent stop <= max(a third of the descent's, 0.5 %)",
    "gap_final_geomean": "final gap <= 2 %, geometric mean", "gap_final_p99": "final gap <= 5 %, 99th percentile",
    "least_regret": "less time lost than every other strategy"} | to_entries[] |
    "| \(.value) | \($v.kept[.key].all) of \($v.surfaces) | \($v.kept[.key].held_out) of \($v.surfaces_held_out) |"),
"",
(if (.verdict.misses | length) > 0 then "Misses:", "", (.verdict.misses[] |
    "* `\(.promise)` on `\(.surface)`\(if .held_out then " (held out)" else "" end): \(.value * 10000 | round / 10000), limit \(.limit * 10000 | round / 10000)\(if .beside != "" then " (`\(.beside)`)" else "" end)"), "" else empty end),
"Over all surfaces (geometric means of the gaps, means of the rest; held-out ones in brackets):", "",
"| strategy | gap at descent stop | final gap | worst p99 | within 2 % by the budget | time lost, share of the budget | slower calls |",
"|---|---|---|---|---|---|---|",
(. as $all | [.rows[].strategy] | unique_by(.) | sort_by(if . == $all.verdict.strategy then "" else . end)[] | . as $s |
    ($all | [rows_of(false)[], rows_of(true)[]] | map(select(.strategy == $s))) as $r |
    ($r | map(select(.held_out))) as $h |
    def both(f): ($r | f) + (if ($h | length) > 0 then " (" + ($h | f) + ")" else "" end);
    "| `\($s)` | \(both(map(.gap_at_descent_stop // 0) | geomean | percent)) | \(both(map(.gap_final_geomean) | geomean | percent)) | \(both(map(.gap_final_p99) | max | percent)) | \(both(map(.share_to["2"]) | add / length | percent)) | \(both(map(.regret_share) | add / length | percent)) | \(both(map(.slower_share) | add / length | percent)) |"),
"", "Row by row:", "",
"| surface | held out | strategy | stop | gap at descent stop | final | p99 | worst | to 5 % | to 2 % | regret |",
"|---|---|---|---|---|---|---|---|---|---|---|",
(.rows[] | "| `\(.surface)` | \(if .held_out then "yes" else "" end) | `\(.strategy)` | \(.calls_at_stop_median | whole) | \(.gap_at_descent_stop | percent) | \(.gap_final_geomean | percent) | \(.gap_final_p99 | percent) | \(.gap_final_worst | percent) | \(.calls_to["5"] | whole) | \(.calls_to["2"] | whole) | \(.regret | round) |")
