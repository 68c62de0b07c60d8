package simulation

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/testing/golden"
)

var pace = Pace{Starts: 2 * time.Second, Stops: time.Second, Trains: 10 * time.Minute, Limit: 24 * time.Hour}

// TestLives: each file testdata/*.txt is a life: the job, then the script, and below the line what happened.
func TestLives(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no lives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(text), "----\n")
			spec, script, _ := strings.Cut(head, "\n\n")
			life, err := Simulate(parseJob(t, spec), parseScript(t, script), pace)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, file, head+"----\n"+life.String())
		})
	}
}

func parseScript(t *testing.T, text string) Script {
	t.Helper()
	script, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// parseJob reads a spec and gives every role a container.
func parseJob(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds.All {
		if kind.Name() != head.Kind {
			continue
		}
		obj := kind.New()
		if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		obj.SetName("demo")
		addContainers(obj)
		return kind.Read(obj)
	}
	t.Fatalf("no kind %q", head.Kind)
	return nil
}

func addContainers(obj manifest.Object) {
	for _, role := range *obj.(kubeflowv1.Job).Parts().ReplicaSpecs {
		role.Template.Spec.Containers = []corev1.Container{{Name: "train"}}
	}
}

func TestSentences(t *testing.T) {
	for sentence, want := range map[string]Event{
		"worker-1 exits 137 at 30s":         {Who: "worker-1", What: Exits, Number: 137, At: 30 * time.Second},
		"Worker-1 exits 1 after 10s":        {Who: "worker-1", What: Exits, Number: 1, At: 10 * time.Second, Each: true},
		"master-0 runs out of memory at 1m": {Who: "master-0", What: OOM, At: time.Minute},
		"worker-1 is evicted at 1m":         {Who: "worker-1", What: Evicted, At: time.Minute},
		"worker scales to 4 at 5m":          {Who: "worker", What: Scales, Number: 4, At: 5 * time.Minute},
		"job is suspended at 1m":            {Who: "job", What: Suspend, At: time.Minute},
		"operator is down from 10s to 40s":  {Who: "operator", What: Down, At: 10 * time.Second, Until: 40 * time.Second},
	} {
		got, err := ParseEvent(sentence)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestWrongSentencesAreRefused(t *testing.T) {
	for sentence, says := range map[string]string{
		"worker-1":                       `"worker-1": it is too short`,
		"worker-1 sings a song at 1m":    `"worker-1 sings a song at 1m": this event is unknown`,
		"worker-1 exits badly at 1m":     `"worker-1 exits badly at 1m": an exit code is a number from 0 to 255`,
		"worker-1 exits 300 at 1m":       `"worker-1 exits 300 at 1m": an exit code is a number from 0 to 255`,
		"worker scales to -1 at 1m":      `"worker scales to -1 at 1m": the number of replicas must be 0 or more`,
		"operator is down from 9s to 9s": `"operator is down from 9s to 9s": the second time must be later`,
		"worker-1 exits 1":               `"worker-1 exits 1": the time is missing or wrong`,
		"worker-1 exits 1 at noon":       `"worker-1 exits 1 at noon": noon is not a duration`,
		"worker-1 is evicted after 10s":  `"worker-1 is evicted after 10s": the time is missing or wrong`,
		"job exits 1 at 10s":             `"job" exits: only a replica such as worker-1 can`,
		"worker-1 is suspended at 10s":   `"worker-1" is suspended: only the job can`,
	} {
		_, err := ParseEvent(sentence)
		if err == nil {
			t.Errorf("%q is accepted", sentence)
			continue
		}
		if got, _, _ := strings.Cut(err.Error(), "; write it"); got != says {
			t.Errorf("got  %s\nwant %s", got, says)
		}
	}
}

func TestTheScriptMustFitTheJob(t *testing.T) {
	for script, want := range map[string]string{
		"ps-0 exits 1 at 1m":                               "demo has no ps-0: it has master-0, worker-0 to worker-3",
		"worker-4 exits 1 at 1m":                           "demo has no worker-4: it has master-0, worker-0 to worker-3",
		"ps scales to 2 at 1m":                             "demo has no ps: its roles are master, worker",
		"worker scales to 5 at 1m\nworker-4 exits 1 at 2m": "<nil>",
		"worker scales to 2000000000 at 1m":                "worker scales to 2000000000: it can have 0 to 10000 replicas",
	} {
		m := parseJob(t, "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 4}}}")
		if _, err := Simulate(m, parseScript(t, script), pace); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
}

// `trainyard scale` refuses the same.
func TestAnElasticJobScalesWithinItsBounds(t *testing.T) {
	for script, want := range map[string]string{
		"worker scales to 4 at 1m": "<nil>",
		"worker scales to 5 at 1m": "worker scales to 5: it can have 2 to 4 replicas",
		"worker scales to 1 at 1m": "worker scales to 1: it can have 2 to 4 replicas",
	} {
		m := parseJob(t, "kind: PyTorchJob\nspec: {elasticPolicy: {minReplicas: 2, maxReplicas: 4}, pytorchReplicaSpecs: {Worker: {replicas: 2}}}")
		if _, err := Simulate(m, parseScript(t, script), pace); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
}

func TestALifeIsJSON(t *testing.T) {
	m := parseJob(t, "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Worker: {}}}")
	life, err := Simulate(m, nil, pace)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(life)
	if err != nil || !strings.Contains(string(text), `"verdict":"Succeeded"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A name ends where the bars begin, and the longest one starts inside the picture: at font size 12 a letter is about 6 wide.
func TestNamesFitInThePicture(t *testing.T) {
	name := "dataset-initializer-0"
	life := &Life{Runs: []Run{{Replica: "node-0", End: time.Minute}, {Replica: name, End: time.Minute}}}
	var ends, bars int
	for line := range strings.Lines(life.SVG()) {
		if strings.Contains(line, ">"+name+"<") {
			_, _ = fmt.Sscanf(line, `<text x="%d"`, &ends)
		} else if strings.Contains(line, "<title>") && bars == 0 {
			_, _ = fmt.Sscanf(line, `<rect x="%d`, &bars)
		}
	}
	if ends < 6*len(name) || bars <= ends {
		t.Errorf("the name ends at %d and the bars begin at %d:\n%s", ends, bars, life.SVG())
	}
}

// The picture has a bar for each run, in the colour of its end, and is well-formed.
func TestPicture(t *testing.T) {
	m := parseJob(t, "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 2}}}")
	life, err := Simulate(m, parseScript(t, "worker-1 exits 137 at 2m"), pace)
	if err != nil {
		t.Fatal(err)
	}
	picture := life.SVG()
	var anything struct{}
	if err := xml.Unmarshal([]byte(picture), &anything); err != nil {
		t.Fatalf("%v:\n%s", err, picture)
	}
	for colour, want := range map[string]int{"#3a9d5d": 3, "#d1495b": 1, "#9db2c9": 2} {
		if got := strings.Count(picture, colour); got != want {
			t.Errorf("%d bars in %s, want %d:\n%s", got, colour, want, picture)
		}
	}
}
