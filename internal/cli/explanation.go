package cli

import (
	"encoding/json"
	"strings"
	"time"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/story"
	"github.com/trainyard/trainyard/internal/yard"
)

// explanation is `trainyard why -o json`: why a job is as it is, for programs.
type explanation struct {
	Job         string                     `json:"job"`
	Namespace   string                     `json:"namespace"`
	Kind        string                     `json:"kind"`
	State       string                     `json:"state"`
	Since       time.Time                  `json:"since"`
	Reason      string                     `json:"reason,omitempty"`
	Ready       string                     `json:"ready,omitempty"`
	Attempts    int32                      `json:"attempts"`
	Retries     int32                      `json:"retries"`
	Disruptions int32                      `json:"disruptions"`
	Message     string                     `json:"message,omitempty"`
	Text        string                     `json:"text"`
	Failure     *kubeflowv1.ReplicaFailure `json:"failure,omitempty"`
	Ledger      []entry                    `json:"ledger"`
	Pods        []podState                 `json:"pods"`
	Warnings    []string                   `json:"warnings"`
}

// podState is a pod of the job.
type podState struct {
	Name    string `json:"name"`
	Replica string `json:"replica"`
	Attempt int32  `json:"attempt"`
	Node    string `json:"node,omitempty"`
	Phase   string `json:"phase"`
}

func explanationOf(s story.Story, j *yard.Job) explanation {
	out := explanation{
		Job: s.Job.Name, Namespace: s.Job.Namespace, Kind: j.Kind.Name(), State: s.State(), Since: s.Since().UTC(), Reason: s.EndReason(),
		Ready: s.Status.Ready, Attempts: s.Attempt(), Retries: s.Status.Retries, Disruptions: s.Status.Disruptions,
		Message: s.Message(), Text: strings.TrimSuffix(s.Why(), "\n"), Ledger: ledgerOf(s), Pods: []podState{}, Warnings: append([]string{}, s.Warnings...),
		Failure: manifest.WriteStatus(job.Status{LastFailure: s.Status.LastFailure}, nil).LastFailure,
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		replica, attempt := yard.ReplicaOf(p)
		out.Pods = append(out.Pods, podState{p.Name, replica, attempt + 1, p.Spec.NodeName, string(p.Status.Phase)})
	}
	return out
}

func printExplanation(out *printer, s story.Story, j *yard.Job) error {
	text, err := json.MarshalIndent(explanationOf(s, j), "", "  ")
	if err != nil {
		return err
	}
	out.printf("%s\n", text)
	return out.err
}
