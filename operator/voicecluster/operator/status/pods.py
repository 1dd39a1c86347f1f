"""Why pods are not there or not ready, in words: the object, Kubernetes' own cause, the remedy."""

from collections.abc import Sequence

from voicecluster.operator.observe import Node
from voicecluster.operator.status.conditions import Fault, Reason
from voicecluster.operator.workloads import Pod, Problem, Workload

_IMAGE = "check the image's name, spec.images.pullSecrets, and that the nodes reach the registry"
_CONFIG = "see `kubectl describe pod {pod}`"
_REMEDIES = {
    "CreateContainerConfigError": _CONFIG,
    "CreateContainerError": _CONFIG,
    "ErrImageNeverPull": "load the image on every node, or change spec.images.pullPolicy",
    "ErrImagePull": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "InvalidImageName": "correct the reference in spec.images",
    "OOMKilled": "raise the region's resources.memory",
    "Unschedulable": "add or free nodes that fit, or change the region's nodeSelector, tolerations or resources",
}
CAUSE_CHARACTERS = 300


def absent(workload: Workload) -> Fault:
    """A DaemonSet or StatefulSet that is not there."""
    message = f"{workload.kind} {workload.name} does not exist yet; it is made as soon as nothing is paused or refused."
    return Fault(Reason.PODS_MISSING, message)


def unseen(workload: Workload) -> Fault:
    """One whose controller has done nothing yet."""
    message = (
        f"{workload.kind} {workload.name}: its controller has not seen it yet; wait, and if it stays so check"
        " kube-controller-manager."
    )
    return Fault(Reason.PODS_MISSING, message)


def lacking(workload: Workload, wanted: int, pods: Sequence[Pod], nodes: Sequence[Node] | None) -> Fault:
    """Fewer ready pods than wanted: what the worst of them says."""
    what = f"{workload.kind} {workload.name}: {workload.ready} of {wanted} pods are ready"
    there = [pod for pod in pods if not pod.terminating]
    if worst := failing(there):
        return Fault(Reason.PODS_FAILING, f"{what}. {worst}.")
    if len(there) < wanted:
        see = f"see the events of `kubectl describe {workload.kind.lower()} {workload.name}`"
        return Fault(Reason.PODS_MISSING, f"{what}; {wanted - len(there)} missing: {see}.")
    lost = {node.name for node in nodes or () if not node.ready}
    for pod in there:
        if not pod.ready and pod.node in lost:
            see = f"repair or delete it; see `kubectl describe node {pod.node}`"
            return Fault(Reason.PODS_NOT_READY, f"{what}. Node {pod.node} is not Ready: {see}.")
    waiting = [pod.name for pod in there if not pod.ready]
    if not waiting:
        return Fault(Reason.PODS_NOT_READY, f"{what}; wait for the controller to count them.")
    see = f"see `kubectl logs {waiting[0]}` and its /readyz"
    return Fault(Reason.PODS_NOT_READY, f"{what}. Pod {waiting[0]} is not ready: {see}.")


def failing(pods: Sequence[Pod]) -> str:
    """What the first pod that does not run says, and the remedy; empty if all run."""
    for pod in pods:
        if pod.problem is not None and not pod.ready and not pod.terminating:
            return _failing(pod, pod.problem)
    return ""


def _failing(pod: Pod, problem: Problem) -> str:
    cause = " ".join(problem.message.split()).rstrip(".")[:CAUSE_CHARACTERS]
    remedy = _REMEDIES.get(problem.reason, "see `kubectl logs {pod} --previous`").format(pod=pod.name)
    return f"Pod {pod.name}: {problem.reason}{f' ({cause})' if cause else ''}: {remedy}"
