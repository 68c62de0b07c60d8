package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/yard"
)

// What torchrun says of itself when a training has failed takes all the room there is for a failure's last words.
func TestTheLastWordsBeforeTorchruns(t *testing.T) {
	const footer = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n====\ntrain.py FAILED"
	worker := job.Replica{Role: "Worker", Index: 1}
	for version, word := range map[string]string{
		"torch 1": "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 12) of binary: /usr/bin/python3",
		"torch 2": "E1115 08:00:00.000000 12 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 0 (pid: 12)",
	} {
		t.Run(version, func(t *testing.T) {
			w := lastWords{}
			hear := func(attempt int32, text string) {
				for line := range strings.SplitSeq(text, "\n") {
					w.hear(yard.Line{Replica: "worker-1", Attempt: attempt, Text: line})
				}
			}
			for i := range 100 {
				hear(0, fmt.Sprint("epoch ", i))
			}
			hear(0, "AssertionError: no data\n"+word+"\nTraceback\n"+footer)
			hear(1, "it goes well")
			told := w.better(&job.Failure{Replica: worker, Message: footer}).Message
			if lines := strings.Split(told, "\n"); len(lines) != toldWords || lines[len(lines)-1] != "AssertionError: no data" {
				t.Errorf("it last said:\n%s", told)
			}
			if own := w.better(&job.Failure{Replica: worker, Message: "killed"}).Message; own != "killed" {
				t.Errorf("another's last words are %q", own)
			}
			if unheard := w.better(&job.Failure{Replica: job.Replica{Role: "Worker"}, Message: footer}).Message; unheard != footer {
				t.Errorf("those of one who was not heard are %q", unheard)
			}
		})
	}
}
