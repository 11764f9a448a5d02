"""The Kubernetes manifests fit the schemas, belong together, and give a gateway the time that its drain takes."""

import re
import sys
from pathlib import Path

import kubernetes_validate
import yaml

directory = Path(__file__).resolve().parent.parent / "kubernetes"
listed = yaml.safe_load((directory / "kustomization.yaml").read_text())["resources"]
problems = []
objects = {}
for name in listed:
    for manifest in yaml.safe_load_all((directory / name).read_text()):
        try:
            kubernetes_validate.validate(manifest, "1.31", strict=True)
        except kubernetes_validate.ValidationError as error:
            problems.append(f"{name}: {manifest['kind']}: {error.message}")
        objects[manifest["kind"]] = manifest
unlisted = {file.name for file in directory.glob("*.yaml")} - {*listed, "kustomization.yaml"}
if unlisted:
    problems.append(f"kustomization.yaml does not list {sorted(unlisted)}")

pod = objects["Deployment"]["spec"]["template"]
container = pod["spec"]["containers"][0]
config = objects["ConfigMap"]["data"]["hookgate.toml"]

# As in modules/service: the longest lease, and what a drain waits for settles.
drain = int(re.search(r'^drain_delay = "(\d+)s"$', config, re.M).group(1))
needs, grace = drain + 30 + 30, pod["spec"]["terminationGracePeriodSeconds"]
if grace <= needs:
    problems.append(
        f"terminationGracePeriodSeconds is {grace}, but a drain takes {drain} + 30 + 30 = {needs} s\n"
        f"hint: use more than {needs}"
    )
probe = container["readinessProbe"]
notices = probe["periodSeconds"] * probe["failureThreshold"]
if drain < notices:
    problems.append(f"drain_delay is {drain} s, but readiness is noticed after {notices} s")

mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
if container["args"][-1] != f"{mounts['config']}/hookgate.toml":
    problems.append(f"the gateway is told to read {container['args'][-1]}, but its configuration is in {mounts['config']}")
for path in re.findall(r'"(?:file:)?(/(?:secrets|tls)/[^"]+)"', config):
    if not path.startswith((mounts["secrets"] + "/", mounts["tls"] + "/")):
        problems.append(f"config.yaml: {path} is not mounted")

labels = pod["metadata"]["labels"]
for kind, selector in {
    "Deployment": objects["Deployment"]["spec"]["selector"]["matchLabels"],
    "Service": objects["Service"]["spec"]["selector"],
    "PodDisruptionBudget": objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    "NetworkPolicy": objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
}.items():
    if selector != labels:
        problems.append(f"{kind}: it selects {selector}, but pods are {labels}")
ports = {port["name"]: port["containerPort"] for port in container["ports"]}
for section, port in {"server": ports["deliveries"], "admin": ports["admin"]}.items():
    if f'[{section}]\nlisten = "0.0.0.0:{port}"' not in config:
        problems.append(f"config.yaml: [{section}] does not listen at {port}, which the deployment names")

for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
