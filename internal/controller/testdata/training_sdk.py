"""Uses jobs as people do with Training Operator's Python SDK. It prints nothing if everything is as the SDK expects it."""
import os
import sys
import time

from kubeflow.training import TrainingClient
from kubeflow.training import models
from kubernetes import client as k8s

namespace = sys.argv[1]
training = TrainingClient(config_file=os.environ["KUBECONFIG"], namespace=namespace)


def replica(script):
    container = k8s.V1Container(name="pytorch", image="none", command=["sh", "-c", script])
    template = k8s.V1PodTemplateSpec(spec=k8s.V1PodSpec(containers=[container]))
    return models.KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy="Never", template=template)


def job(name, script):
    return models.KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        metadata=k8s.V1ObjectMeta(name=name, namespace=namespace),
        spec=models.KubeflowOrgV1PyTorchJobSpec(
            run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            pytorch_replica_specs={"Master": replica(script), "Worker": replica(script)},
        ),
    )


def wait(name, condition):
    kwargs = {"expected_conditions": {condition}, "wait_timeout": 120, "polling_interval": 1, "job_kind": "PyTorchJob"}
    return training.wait_for_job_conditions(name=name, **kwargs)


# A job from a model, to its end, with its pods, logs and conditions.
training.create_job(job("good", "echo rank $RANK of $WORLD_SIZE"))
wait("good", "Succeeded")
assert training.is_job_created("good", job_kind="PyTorchJob") and training.is_job_succeeded("good", job_kind="PyTorchJob")
assert [c.type for c in training.get_job_conditions("good", job_kind="PyTorchJob")][0] == "Created"
assert sorted(training.get_job_pod_names("good")) == ["good-master-0", "good-worker-0"]
assert training.get_job_pod_names("good", is_master=True) == ["good-master-0"]
while training.get_job_pods("good", replica_type="worker")[0].status.phase == "Pending":
    time.sleep(0.1)  # the SDK shows no logs of such pods, and the Master alone decides that the job has succeeded
logs, _ = training.get_job_logs("good", job_kind="PyTorchJob", is_master=False, replica_type="worker")
assert "rank 1 of 2" in str(logs), logs
assert [j.metadata.name for j in training.list_jobs(job_kind="PyTorchJob")] == ["good"]

# A failure and its events.
training.create_job(job("bad", "exit 3"))
try:
    wait("bad", "Failed")
except RuntimeError:
    pass  # the SDK raises it when a job has failed
assert training.is_job_failed("bad", job_kind="PyTorchJob")
_, events = training.get_job_logs("bad", job_kind="PyTorchJob", verbose=True)
assert any("exited with code 3" in e for e in events["pytorchjob/bad"]), events

# A function. With one worker the SDK needs no torchrun.
def train():
    print("trained by a function")


training.create_job(name="function", job_kind="PyTorchJob", base_image="none", train_func=train, num_workers=1)
wait("function", "Succeeded")
logs, _ = training.get_job_logs("function", job_kind="PyTorchJob")
assert "trained by a function" in str(logs), logs

# An edit and a deletion.
training.update_job({"metadata": {"labels": {"team": "vision"}}}, name="good", job_kind="PyTorchJob")
assert training.get_job("good", job_kind="PyTorchJob").metadata.labels == {"team": "vision"}
training.delete_job("good", job_kind="PyTorchJob")
