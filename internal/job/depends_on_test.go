package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDependsOn(t *testing.T) {
	for _, row := range []struct {
		sentence string
		happens  []string // lines of a story
		creates  string   // the pods of the last decision that makes some
		says     string   // what the job waits for in the end
	}{
		{"only steps that wait for nothing start at once", nil, "dataset-0", "it starts when dataset is complete"},
		{"a step that runs is not complete", []string{"run"}, "dataset-0", "it starts when dataset is complete"},
		{"the next starts when the one before is complete", []string{"run", "exit dataset-0 0"}, "model-0", "it starts when model is complete"},
		{"those that train start together", []string{"run", "exit dataset-0 0", "run", "exit model-0 0"}, "node-0 node-1", ""},
		{"a step that failed is not complete", []string{"run", "exit dataset-0 1"}, "dataset-0", "it starts when dataset is complete"},
		{"a step that failed does not start the others over that are done", []string{"run", "exit dataset-0 0", "run", "exit model-0 1"}, "model-0", "it starts when model is complete"},
		{"ready means each of them", []string{"edit launcher=1", "run", "exit dataset-0 0", "run", "exit model-0 0", "run node-0"}, "node-0 node-1", "it starts when node is ready"},
		{"ready is enough where it is asked for", []string{"edit launcher=1", "run", "exit dataset-0 0", "run", "exit model-0 0", "run"}, "launcher-0", ""},
		{"one that is already done was ready", []string{"edit launcher=1", "run", "exit dataset-0 0", "run", "exit model-0 0", "run node-0", "exit node-0 0", "run node-1"}, "launcher-0", ""},
		{"a step may follow the training", []string{"edit evaluate=1", "run", "exit dataset-0 0", "run", "exit model-0 0", "run", "exit node-0 0", "exit node-1 0"}, "evaluate-0", ""},
		{"one that fails does not start the training over", []string{"edit evaluate=1", "run", "exit dataset-0 0", "run", "exit model-0 0", "run", "exit node-0 0", "exit node-1 0", "run", "exit evaluate-0 1"}, "evaluate-0", ""},
		{"nodes that train for another step are a gang", []string{"edit evaluate=1", "run", "exit dataset-0 0", "run", "exit model-0 0", "run", "exit node-0 0", "exit node-1 1"}, "node-0 node-1", "it starts when node is complete"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			story, err := replay(strings.Join(append([]string{"job TrainJob"}, row.happens...), "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := lastCreated(story); got != row.creates {
				t.Errorf("creates %q, want %q:\n%s", got, row.creates, story)
			}
			if last := story[strings.LastIndex(story, "    record"):]; !strings.Contains(last, row.says) || row.says == "" && strings.Contains(last, "waits") {
				t.Errorf("does not say %q:\n%s", row.says, last)
			}
		})
	}
}

// lastCreated are the pods that the last decision to make some makes.
func lastCreated(story string) string {
	var pods []string
	lines := strings.Split(story, "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		var pod string
		if _, err := fmt.Sscanf(line, "    create pod demo-%s", &pod); err == nil {
			pods = append(pods, pod)
		} else if len(pods) > 0 {
			break
		}
	}
	slices.Reverse(pods)
	return strings.Join(pods, " ")
}
