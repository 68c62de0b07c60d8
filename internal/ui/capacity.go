package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/trainyard/trainyard/api/naming"
)

// capacityTimeout is how long the cluster may take to list its nodes and pods.
const capacityTimeout = 10 * time.Second

// amount is a number of processors, bytes and GPUs.
type amount struct {
	Cores  float64 `json:"cores"`
	Memory float64 `json:"memory"`
	GPUs   float64 `json:"gpus"`
}

func (a *amount) add(b amount) {
	a.Cores, a.Memory, a.GPUs = a.Cores+b.Cores, a.Memory+b.Memory, a.GPUs+b.GPUs
}

// amountOf are the resources that training asks for. GPUs are those of any maker.
func amountOf(list corev1.ResourceList) (a amount) {
	for name, quantity := range list {
		switch {
		case name == corev1.ResourceCPU:
			a.Cores = quantity.AsApproximateFloat64()
		case name == corev1.ResourceMemory:
			a.Memory = quantity.AsApproximateFloat64()
		case strings.HasSuffix(string(name), "/gpu"):
			a.GPUs += quantity.AsApproximateFloat64()
		}
	}
	return a
}

// node is a node with what it has and what its pods hold.
type node struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	Total   amount   `json:"total"`
	Held    amount   `json:"held"`
	Holders []holder `json:"holders"`
}

// holder is a job that has pods on a node, or waits for one. Pods that are of no job have no name.
type holder struct {
	Namespace string    `json:"namespace"`
	Job       string    `json:"job"`
	UID       types.UID `json:"uid"`
	Pods      int       `json:"pods"`
	Wants     amount    `json:"wants"`
	// Message is why the scheduler has no place for a pod.
	Message string `json:"message,omitempty"`
}

// capacity answers with what the cluster's nodes have, who holds it, and who waits.
func (j *jobs) capacity(w http.ResponseWriter, r *http.Request) {
	if !j.cluster.Running() {
		answer(w, map[string]any{"running": false, "nodes": []node{}, "waiting": []holder{}})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), capacityTimeout)
	defer cancel()
	var nodes corev1.NodeList
	var pods corev1.PodList
	y, err := j.open(ctx)
	if err == nil {
		err = errors.Join(y.List(ctx, &nodes), y.List(ctx, &pods))
	}
	if err != nil {
		http.Error(w, sentence(err), codeOf(err))
		return
	}
	all, waiting := held(nodes.Items, pods.Items)
	answer(w, map[string]any{"running": true, "nodes": all, "waiting": waiting})
}

// held adds up what pods hold on each node, and what those wait for that have none.
func held(nodes []corev1.Node, pods []corev1.Pod) (all []node, waiting []holder) {
	all, waiting = []node{}, []holder{}
	at := map[string]int{}
	for _, n := range nodes {
		at[n.Name] = len(all)
		all = append(all, node{Name: n.Name, State: nodeState(&n), Total: amountOf(n.Status.Allocatable), Holders: []holder{}})
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		wants := amountOf(resource.PodRequests(pod, resource.PodResourcesOptions{}))
		index, placed := at[pod.Spec.NodeName]
		switch {
		case placed:
			all[index].Held.add(wants)
			all[index].Holders = count(all[index].Holders, pod, wants)
		case pod.Spec.NodeName == "":
			waiting = count(waiting, pod, wants)
		}
	}
	for i := range all {
		sortHolders(all[i].Holders)
	}
	sortHolders(waiting)
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.Name, b.Name) })
	return all, waiting
}

// count adds a pod to what its job holds.
func count(holders []holder, pod *corev1.Pod, wants amount) []holder {
	h := holder{Namespace: pod.Namespace}
	if owner := metav1.GetControllerOf(pod); owner != nil && pod.Labels[naming.LabelJobName] != "" {
		h.Job, h.UID = pod.Labels[naming.LabelJobName], owner.UID
	}
	i := slices.IndexFunc(holders, func(other holder) bool { return other.Namespace == h.Namespace && other.UID == h.UID })
	if i < 0 {
		i, holders = len(holders), append(holders, h)
	}
	holders[i].Pods++
	holders[i].Wants.add(wants)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			holders[i].Message = c.Message
		}
	}
	return holders
}

func sortHolders(holders []holder) {
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.Wants.GPUs, a.Wants.GPUs), cmp.Compare(b.Wants.Cores, a.Wants.Cores), strings.Compare(a.Namespace+"/"+a.Job, b.Namespace+"/"+b.Job))
	})
}

// nodeState is a node's state in a few words.
func nodeState(n *corev1.Node) string {
	state := "not ready"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			state = "ready"
		}
	}
	if n.Spec.Unschedulable {
		state += ", takes no new pods"
	}
	return state
}
