# The tables of knobs.md, from the catalogue: jq -rf docs/knobs.jq data/knobs.json
# A test holds the page to them.
def row: "| " + join(" | ") + " |";
def settable($scope):
    [.scopes[] | select(.scope == $scope) | "\(.since): \(.how)"] | if . == [] then "-" else first end;
def values:
    if .values then .values | map(tostring) | join(", ")
    elif .step then "multiples of \(.step) from \(.min) to \(.max)"
    elif .power_of_two_times == 1 then "powers of two"
    else "\(.power_of_two_times) times a power of two" end
    + if .also then ", and \(.also | map(tostring) | join(", "))" else "" end;
def rules($protocol):
    [.rules[] | select(.protocol == [$protocol] and (.algorithm | not)) | values] | first;

(["knob", "a call", "a communicator", "a process"] | row),
(["---", "---", "---", "---"] | join("|") | "|\(.)|"),
(.knobs[] | [.name, settable("call", "communicator", "process")] | row),
"",
(["knob", "Simple", "LL", "LL128"] | row),
(["---", "---", "---", "---"] | join("|") | "|\(.)|"),
(.knobs[] | select(.name == ("threads", "buffer")) | [.name, rules("simple", "ll", "ll128")] | row)
