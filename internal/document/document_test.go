package document

import (
	"fmt"
	"strings"
	"testing"
)

const file = `# two objects
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: demo
  labels:
    app.kubernetes.io/name: demo
spec:
  pytorchReplicaSpecs:
    Master:
      template: &pod
        spec:
          containers:
          - name: pytorch
          - name: sidecar
            image: x
    Worker:
      template: *pod
`

func TestLines(t *testing.T) {
	docs, err := Parse("job.yaml", file)
	if err != nil || len(docs) != 2 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for _, row := range []struct {
		path string
		line int
	}{
		{"", 6},
		{"kind", 7},
		{"metadata.name", 9},
		{"metadata.labels.app.kubernetes.io/name", 11},
		{"metadata.labels[app.kubernetes.io/name]", 11},
		{"spec.pytorchReplicaSpecs[Worker]", 21},
		{"spec.pytorchReplicaSpecs.Master.template.spec.containers[1].image", 20},
		{"spec.pytorchReplicaSpecs.Worker.template.spec.containers[1].image", 20},
		{"spec.runPolicy.backoffLimit", 12},
		{"spec.pytorchReplicaSpecs.Master.template.spec.containers[7]", 17},
	} {
		t.Run(row.path, func(t *testing.T) {
			if got := docs[1].Line(row.path); got != row.line {
				t.Errorf("line %d, want %d", got, row.line)
			}
		})
	}
}

func TestMistakesHaveLines(t *testing.T) {
	for _, row := range []struct{ name, text, says string }{
		{"nothing", "# only a comment\n", "f: the file has no object in it"},
		{"not an object", "---\n- a\n", "f:2: an object is expected, with apiVersion, kind, metadata and spec"},
		{"no kind", "---\napiVersion: v1\n", "f:2: the object has no kind: add kind and apiVersion"},
		{"no apiVersion", "kind: Pod\n", "f:1: the Pod has no apiVersion: add it"},
		{"a key twice", "apiVersion: v1\nkind: Pod\nkind: Pod\n", "f:3: kind is already set in line 2: remove one of them"},
		{"keys twice", "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a, name: b}\nkind: Pod\n",
			"f:3: kind is already set in line 2: remove one of them\nf:5: kind is already set in line 3: remove one of them\n" +
				"f:4: name is already set in line 4: remove one of them"},
		{"a tab", "apiVersion: v1\n\tkind: Pod\n", "f:2: found a tab character that violates indentation"},
		{"an alias that contains itself", "apiVersion: v1\nkind: Pod\na: &a\n  <<: *a\n", "f: anchor 'a' value contains itself"},
		{"two mistakes", "kind: Pod\n---\nkind: Job\n", "f:1: the Pod has no apiVersion: add it\nf:3: the Job has no apiVersion: add it"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("f", row.text)
			if err == nil || err.Error() != row.says {
				t.Errorf("got  %v\nwant %s", err, row.says)
			}
		})
	}
}

func TestWrittenIsTheTextInTheFile(t *testing.T) {
	docs, err := Parse("f", "apiVersion: v1\nkind: Pod\nmetadata: {name: y, labels: {a: &one 1, b: *one}}\n")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"metadata.name": "y", "metadata.labels.b": "1", "metadata": "", "metadata.uid": ""} {
		if got := docs[0].Written(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestWhatIsMergedIsRead(t *testing.T) {
	for _, row := range []struct{ name, text, reads string }{
		{"the mapping itself counts before what is merged", "a: {<<: {x: 1, z: 2}, x: 3}", "x: 3, z: 2"},
		{"also if it is set before the merge", "a: {x: 3, <<: {x: 1, z: 2}}", "x: 3, z: 2"},
		{"the first of several merges counts", "a: {<<: [{x: 1}, {x: 2, z: 2}]}", "x: 1, z: 2"},
		{"an alias", "b: &b {x: 1, z: 2}\na: {<<: *b}", "x: 1, z: 2"},
		{"a value that is not merged has an anchor", "a: {<<: {x: &two 2}, x: 1, z: *two}", "x: 1, z: 2"},
		{"a merged mapping has a merge itself", "a: {<<: {<<: {x: 1, z: 3}, z: 2}}", "x: 1, z: 2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			docs, err := Parse("f", "apiVersion: v1\nkind: Pod\n"+row.text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("x: %s, z: %s", docs[0].Written("a.x"), docs[0].Written("a.z")); got != row.reads {
				t.Errorf("it reads %s, want %s", got, row.reads)
			}
			if got := fmt.Sprint(docs[0].Object.Object["a"]); got != "map["+strings.ReplaceAll(strings.ReplaceAll(row.reads, ": ", ":"), ",", "")+"]" {
				t.Errorf("the object has %s", got)
			}
		})
	}
}

// The rest of an object with a key that is set twice is read as well, so that lint can check it too.
func TestTheLastOfTwoKeysIsRead(t *testing.T) {
	docs, err := Parse("f", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n")
	if err == nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	if name, line := docs[0].Object.GetName(), docs[0].Line("metadata.name"); name != "b" || line != 5 {
		t.Errorf("%s in line %d", name, line)
	}
}
