package cli_test

import (
	"bufio"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What differs from run to run.
var passing = regexp.MustCompile(`"(time)":"[^"]+"|"(seconds)":[\d.]+`)

// `run -o json` is a line for each thing that happens. The words are a promise to the programs that read them.
func TestRunTellsMachinesInJSON(t *testing.T) {
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
{"type":"log","time":…,"replica":"worker-0","attempt":0,"text":"one"}
{"attempts":1,"disruptions":0,"exitCode":0,"job":"machine","reason":"Succeeded","retries":0,"seconds":…,"state":"Succeeded","type":"summary"}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other lines (-want +got):\n%s", diff)
	}
}

// `get -o json` is a list of jobs as kubectl has it.
func TestGetTellsMachinesInJSON(t *testing.T) {
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
