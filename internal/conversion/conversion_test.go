package conversion

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	trainerv1alpha1 "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/lint"
	"github.com/trainyard/trainyard/internal/testing/admission"
	"github.com/trainyard/trainyard/internal/testing/golden"
)

// TestConversions shows what becomes of each testdata/<name>.yaml, in <name>.v1.txt: the notes, a bar, the new text. The new
// text has no errors, and nothing is left to convert in it.
func TestConversions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			notes, converted := convert(t, string(text))
			got := notes + "----\n" + converted
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".v1.txt", got)
			if _, again := convert(t, converted); again != converted {
				t.Errorf("converting twice changes it:\n%s", cmp.Diff(converted, again))
			}
			problems, _, err := lint.Check(t.Context(), "converted", converted)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if p.Severity == lint.Error {
					t.Error(p)
				}
			}
		})
	}
}

func convert(t *testing.T, text string) (notes, converted string) {
	t.Helper()
	docs, err := document.Parse("job.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		said, err := ToV1(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range said {
			notes += fmt.Sprintf("%d: %s\n", n.Line, n.Text)
		}
	}
	if converted, err = Write(docs); err != nil {
		t.Fatal(err)
	}
	return notes, converted
}

// TestTrainJobs shows what becomes of each PyTorchJob among testdata/<name>.yaml as a TrainJob, in <name>.trainjob.txt: the notes, a
// bar, the runtime and the job. The API server takes both as they are.
func TestTrainJobs(t *testing.T) {
	files, err := filepath.Glob("testdata/pytorch-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			docs, err := document.Parse(file, string(content))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			var converted []*document.Document
			for _, doc := range docs {
				become, notes, err := ToTrainJob(doc)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range notes {
					got += fmt.Sprintf("%d: %s\n", n.Line, n.Text)
				}
				converted = append(converted, become...)
			}
			text, err := Write(converted)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".trainjob.txt", got+"----\n"+text)
			for _, doc := range converted {
				if doc.Object.GroupVersionKind().Group != trainerv1alpha1.GroupVersion.Group {
					continue
				}
				if prefix := doc.Object.GetGenerateName(); prefix != "" {
					doc.Object.SetName(prefix + "xxxxx") // as the API server does before it looks
				}
				if dropped, refusals := admission.Admit(t, doc.Object, nil); len(dropped)+len(refusals) > 0 {
					t.Errorf("the API server drops %v of %s and says %v", dropped, doc.Object.GetKind(), refusals)
				}
			}
		})
	}
}

func TestATFJobIsNoTrainJob(t *testing.T) {
	docs, err := document.Parse("job.yaml", "apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {}")
	if err != nil {
		t.Fatal(err)
	}
	want := "job.yaml:2: a TFJob has no counterpart among TrainJobs: only a PyTorchJob has"
	if _, _, err := ToTrainJob(docs[0]); fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestWhatCannotBeConverted(t *testing.T) {
	for _, row := range []struct{ name, text, says string }{
		{"an unknown layout", "apiVersion: kubeflow.org/v1alpha1\nkind: TFJob\nspec: {replicaSpecs: []}",
			"job.yaml:1: the layout of kubeflow.org/v1alpha1 is unknown: use one of kubeflow.org/v1, kubeflow.org/v1beta2, kubeflow.org/v1beta1"},
		{"two values", "apiVersion: kubeflow.org/v1\nkind: TFJob\nspec:\n  backoffLimit: 1\n  runPolicy: {backoffLimit: 2}",
			"job.yaml:4: spec.backoffLimit is 1 and spec.runPolicy.backoffLimit is 2: remove one of them"},
		{"two values, one of them an alias", "apiVersion: kubeflow.org/v1\nkind: TFJob\nspec:\n  activeDeadlineSeconds: &n 2\n  backoffLimit: 1\n  runPolicy: {backoffLimit: *n}",
			"job.yaml:5: spec.backoffLimit is 1 and spec.runPolicy.backoffLimit is 2: remove one of them"},
		{"a spec that is elsewhere", "apiVersion: kubeflow.org/v1\nkind: TFJob\nx: &x {backoffLimit: 1, runPolicy: {backoffLimit: 2}}\nspec: *x",
			"job.yaml:3: spec.backoffLimit is 1 and spec.runPolicy.backoffLimit is 2: remove one of them"},
		{"no spec", "apiVersion: kubeflow.org/v1\nkind: TFJob", "job.yaml:1: the job has no spec: add it"},
	} {
		t.Run(row.name, func(t *testing.T) {
			docs, err := document.Parse("job.yaml", row.text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ToV1(docs[0]); fmt.Sprint(err) != row.says {
				t.Errorf("got  %v\nwant %s", err, row.says)
			}
		})
	}
}
