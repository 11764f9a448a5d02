"""Names that infra/ shares with the gateway are the gateway's: metrics and their labels, keys of the configuration,
outcomes and steps; and every alarm is explained in docs/operate.md, and no other.

    names.py            compares with the documentation and the code
    names.py METRICS    and with what a running gateway tells at /metrics
"""

import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent.parent
problems = []


def text(path):
    return (root / path).read_text()


def same(what, mine, theirs, hint):
    for name in sorted(mine - theirs):
        problems.append(f"{what}: `{name}` is unknown to {hint}")


# Metrics, as docs/metrics.md has them, which is made of the code. Counters end in `_total` in the listener's text.
metrics = {}
for name, kind, labels in re.findall(r"^\| `(hookgate_\w+)` \| (\w+) \| ([^|]*) \|", text("docs/metrics.md"), re.M):
    metrics[name + ("_total" if kind == "counter" else "")] = set(re.findall(r"`(\w+)`", labels))
if len(metrics) < 20:
    sys.exit("docs/metrics.md has no table that can be read\nhint: compare this script with it")

used = set()
for file in (root / "infra").rglob("*.tf"):
    if ".terraform" not in file.parts:
        used |= set(re.findall(r"\bhookgate_[a-z0-9_]+", file.read_text()))
for file in (root / "infra/kubernetes").rglob("*.yaml"):
    used |= set(re.findall(r"\bhookgate_[a-z0-9_]+", file.read_text()))
same("infra", used, set(metrics), "docs/metrics.md (counters end in _total)")

if len(sys.argv) > 1:
    told = {
        name + ("_total" if kind == "counter" else "")
        for name, kind in re.findall(r"^# TYPE (hookgate_\w+) (\w+)$", Path(sys.argv[1]).read_text(), re.M)
    }
    # With labels a metric begins with its first series: these two have one in any gateway that had a delivery.
    begun = {name for name in used if not metrics.get(name)} | {"hookgate_deliveries_total", "hookgate_step_seconds"}
    same("infra", begun, told, "the running gateway")
    same("the running gateway", told, set(metrics), "docs/metrics.md")

# The labels that metrics are added up by.
collector = text("infra/modules/service/collector.tf")
declared = re.search(r"  metrics = \{\n(.*?)\n  \}\n", collector, re.S).group(1)
for label, names in re.findall(r'"(\w*)"\s*= \[(.*?)\]', declared, re.S):
    for name in re.findall(r'"(hookgate_\w+)"', names):
        if label and label not in metrics.get(name, set()):
            problems.append(f"collector.tf: `{name}` has no label `{label}`")
kept = set(re.findall(r'"(hookgate_\w+)"', declared))
observed = set()
for file in ["main.tf", "dashboard.tf"]:
    observed |= set(re.findall(r'"(hookgate_\w+)"', text(f"infra/modules/observability/{file}")))
observed |= set(re.findall(r'"(hookgate_\w+)"', text("infra/modules/service/scaling.tf")))
same("alarms, dashboard and autoscaling", observed, kept, "collector.tf, so it would never come to CloudWatch")

# Outcomes and steps.
telemetry = text("gateway/src/telemetry.rs")
names = set(re.findall(r'Self::\w+ => "([a-z-]+)"', telemetry))
dashboard = text("infra/modules/observability/dashboard.tf")
for local in ["outcomes", "steps"]:
    listed = re.search(rf"{local}\s*= \[(.*?)\]", dashboard).group(1)
    same(f"dashboard.tf {local}", set(re.findall(r'"([a-z-]+)"', listed)), names, "gateway/src/telemetry.rs")
same(
    "alarms",
    set(re.findall(r'(?:outcome|step) = "([a-z-]+)"', text("infra/modules/observability/main.tf"))),
    names,
    "gateway/src/telemetry.rs",
)

# Keys of the configuration.
reference = {}
for section, body in re.findall(r"^## `\[(.+?)\]`\n(.*?)(?=^## |\Z)", text("docs/configuration.md"), re.M | re.S):
    reference[section] = set(re.findall(r"^\| `(\w+)` \|", body, re.M))
variables = text("infra/modules/configuration/variables.tf")


def fields(variable, of):
    block = re.search(rf'variable "{variable}" \{{\n.*?object\(\{{\n(.*?)\n\s*\}}\)', of, re.S).group(1)
    return set(re.findall(r"^\s*(\w+)\s+=", block, re.M))


sources = fields("tenants", variables)
if sources != reference["tenants.TENANT.sources.SOURCE"]:
    odd = sources ^ reference["tenants.TENANT.sources.SOURCE"]
    problems.append(f"modules/configuration: a source's keys are not those of docs/configuration.md: {sorted(odd)}")
for variable, section in [("server", "server"), ("plugins", "plugins"), ("sqs", "queue.sqs"), ("pressure", "queue.pressure")]:
    same(f"modules/configuration {variable}", fields(variable, variables), reference[section], "docs/configuration.md")
for variable in ["tenants", "server", "plugins", "sqs", "pressure"]:
    if fields(variable, variables) != fields(variable, text("infra/variables.tf")):
        problems.append(f"infra/variables.tf: `{variable}` has other fields than in modules/configuration")
if fields("thresholds", text("infra/modules/observability/variables.tf")) != fields("thresholds", text("infra/variables.tf")):
    problems.append("infra/variables.tf: `thresholds` has other fields than in modules/observability")

# Actions: each has its call in the code.
calls = {
    "dynamodb": {"DeleteItem", "DescribeTable", "DescribeTimeToLive", "GetItem", "PutItem", "UpdateItem"},
    "sqs": {"GetQueueAttributes", "GetQueueUrl", "SendMessage"},
}
code = "".join(file.read_text() for file in (root / "gateway/src").rglob("*.rs"))
# `hookgate dev create-tables` is for stand-ins.
ours = {"create_table", "create_queue", "update_time_to_live"}
made = set(re.findall(r"\bclient\s*\.(\w+)\(\)\s*\.", code)) - {"config"}
known = {"send_message_batch" if name == "SendMessage" else re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for names in calls.values() for name in names}
if made - ours != known:
    problems.append(f"the calls in the code and the actions allowed differ: {sorted((made - ours) ^ known)}")
statements = text("infra/modules/claims/main.tf") + text("infra/modules/queue/main.tf")
for service, names in calls.items():
    allowed = set(re.findall(rf'"{service}:(\w+)"', statements.split("consumer_statements")[0]))
    if allowed != names:
        problems.append(f"{service}: the actions allowed and those called differ: {sorted(allowed ^ names)}")

# Alarms and the runbook.
alarms = set(re.findall(r"^    ([a-z0-9-]+) = \{\n      (?:what|load_balancer)", text("infra/modules/observability/main.tf"), re.M))
explained = set(re.findall(r"^### `([a-z0-9-]+)`", text("docs/operate.md"), re.M))
if not alarms or alarms != explained:
    problems.append(f"docs/operate.md explains other alarms than there are: {sorted(alarms ^ explained)}")

for problem in problems:
    print(problem, file=sys.stderr)
if problems:
    sys.exit(f"{len(problems)} names differ")
print(f"{len(used)} metrics, {len(alarms)} alarms, {sum(map(len, calls.values()))} actions, {len(sources)} keys of a source: all the gateway's")
