package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/golden"
)

// TestProblems shows, for each testdata/<name>.yaml, every problem of it: they stand in <name>.txt.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			problems, jobs, err := Check(t.Context(), name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("jobs: %d\n", jobs)
			for _, p := range problems {
				got += p.String() + "\n"
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", got)
		})
	}
}

// What the API accepts as it is, is found good but for advice.
func TestTheAPIsExamplesHaveNoErrors(t *testing.T) {
	files, err := filepath.Glob("../../api/kubeflow/v1/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			problems, jobs, err := Check(t.Context(), filepath.Base(file), string(text))
			if err != nil || jobs == 0 {
				t.Fatalf("%d jobs, %v", jobs, err)
			}
			for _, p := range problems {
				if p.Severity == Error {
					t.Error(p)
				}
			}
		})
	}
}
