package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/yard"
)

// After a failed training torchrun's own lines fill all the space that Kubernetes has for the message of a failure.
func TestTheLastLinesBeforeTorchruns(t *testing.T) {
	const footer = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n====\ntrain.py FAILED"
	worker := job.Replica{Role: "Worker", Index: 1}
	for version, word := range map[string]string{
		"torch 1": "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 12) of binary: /usr/bin/python3",
		"torch 2": "E1115 08:00:00.000000 12 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 0 (pid: 12)",
	} {
		t.Run(version, func(t *testing.T) {
			w := lastLines{}
			add := func(attempt int32, text string) {
				for line := range strings.SplitSeq(text, "\n") {
					w.add(yard.Line{Replica: "worker-1", Attempt: attempt, Text: line})
				}
			}
			for i := range 100 {
				add(0, fmt.Sprint("epoch ", i))
			}
			add(0, "AssertionError: no data\n"+word+"\nTraceback\n"+footer)
			add(1, "it goes well")
			message := w.beforeTorchrun(&job.Failure{Replica: worker, Message: footer}).Message
			if lines := strings.Split(message, "\n"); len(lines) != shownLines || lines[len(lines)-1] != "AssertionError: no data" {
				t.Errorf("it last said:\n%s", message)
			}
			if own := w.beforeTorchrun(&job.Failure{Replica: worker, Message: "killed"}).Message; own != "killed" {
				t.Errorf("the lines of another replica are %q", own)
			}
			if unseen := w.beforeTorchrun(&job.Failure{Replica: job.Replica{Role: "Worker"}, Message: footer}).Message; unseen != footer {
				t.Errorf("without lines the message is %q", unseen)
			}
		})
	}
}
