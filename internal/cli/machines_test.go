package cli_test

import (
	"bufio"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What differs from run to run.
var passing = regexp.MustCompile(`"(time|start|end)":"[^"]+"|"(seconds)":[\d.]+`)

// `run -o json` is a line for each thing that happens. Programs rely on these words.
func TestRunPrintsJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	stage := stage(t.TempDir())
	cmd := d.run(stage.until("seen")+"; echo one", "--name=machine", "-o=json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := passing.ReplaceAllString(lines.Text(), `"$1$2":…`)
		got += line + "\n"
		if regexp.MustCompile(`"type":"running"`).MatchString(line) {
			stage.give(t, "seen")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	want := `{"job":"machine","message":"PyTorchJob machine is submitted.","time":…,"type":"submitted"}
{"job":"machine","message":"machine is running, 1/1 ready.","time":…,"type":"running"}
{"type":"log","job":"machine","time":…,"replica":"worker-0","attempt":1,"text":"one"}
{"type":"summary","time":…,"job":"machine","state":"Succeeded","reason":"Succeeded","exitCode":0,"seconds":…,"attempts":1,"retries":0,"disruptions":0,` +
		`"ledger":[{"attempt":1,"start":…,"end":…,"reason":"Succeeded","message":"is successfully completed"}]}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other lines (-want +got):\n%s", diff)
	}
}

// The summary of a job that failed has the first failure, as a status has its last, and the ledger of attempts.
func TestRunPrintsAFailureAsJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := finish(d, d.run("echo no data; exit $((RANK * 7))", "--name=machine", "--nodes=2", "--retries=1", "-o=json"))
	lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	got := passing.ReplaceAllString(lines[len(lines)-1], `"$1$2":…`)
	why := `Worker 1 (pod machine-worker-1 on node trainyard) exited with code 7`
	want := `{"type":"summary","time":…,"job":"machine","state":"Failed","reason":"BackoffLimit","exitCode":1,"seconds":…,"attempts":2,"retries":1,"disruptions":0,` +
		`"failure":{"replica":"worker-1","pod":"machine-worker-1","node":"trainyard","class":"Application","exitCode":7,"reason":"Error","message":"no data","time":…},` +
		`"ledger":[{"attempt":1,"start":…,"end":…,"reason":"Restarted","message":"` + why + `; retry 1 of 1"},` +
		`{"attempt":2,"start":…,"end":…,"reason":"BackoffLimit","message":"failed: ` + why + `; backoffLimit 1 is used up"}]}`
	if diff := cmp.Diff(want, got); diff != "" || o.Code != 1 {
		t.Errorf("exit code %d and another summary (-want +got):\n%s\n%s", o.Code, diff, o.Stderr)
	}
}

// `get -o json` is a list of jobs as kubectl has it.
func TestGetPrintsJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.expect(finish(d, d.run("exit 3", "--name=machine")), 1)
	type object struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Status           struct{ Ready string }
	}
	var list struct {
		APIVersion, Kind string
		Items            []object
	}
	if err := json.Unmarshal([]byte(d.types("get", "-o", "json").Stdout), &list); err != nil {
		t.Fatal(err)
	}
	want := object{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob"}
	want.Metadata.Name, want.Status.Ready = "machine", "0/1"
	if diff := cmp.Diff([]object{want}, list.Items); diff != "" || list.APIVersion != "v1" || list.Kind != "List" {
		t.Errorf("a %s %s with other jobs (-want +got):\n%s", list.APIVersion, list.Kind, diff)
	}
}
