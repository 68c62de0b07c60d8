package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

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
			problems, count, err := Check(t.Context(), name, string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("jobs: %d\n", count.Jobs)
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
			problems, count, err := Check(t.Context(), filepath.Base(file), string(text))
			if err != nil || count.Jobs == 0 {
				t.Fatalf("%d jobs, %v", count.Jobs, err)
			}
			for _, p := range problems {
				if p.Severity == Error {
					t.Error(p)
				}
			}
		})
	}
}

// Whatever stands in the place of any value, something can be said about it: in words, with its line, and nothing about what is not
// there because it could not be read.
func TestAnyValueInAnyPlace(t *testing.T) {
	for _, file := range []string{"testdata/good.yaml", "testdata/trainjob.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "---\n") {
			var root yaml.Node
			if err := yaml.Unmarshal([]byte(part), &root); err != nil {
				t.Fatal(err)
			}
			for _, node := range values(root.Content[0]) {
				before := *node
				for _, value := range []string{"", "1", "-1", "0.5", "y", "text", "[]", "[text]", "{}", "{a: b}"} {
					var other yaml.Node
					if err := yaml.Unmarshal([]byte("a: "+value), &other); err != nil {
						t.Fatal(err)
					}
					*node = *other.Content[0].Content[1]
					mutant, err := yaml.Marshal(&root)
					if err != nil {
						t.Fatal(err)
					}
					problems, _, err := Check(t.Context(), "f", string(mutant))
					for _, p := range problems {
						if strings.Contains(p.String(), "<nil>") || strings.Contains(p.Message, "no such key") || p.Line == 0 || p.Message == "" {
							t.Errorf("%s\n%s", p, mutant)
						}
					}
					if err != nil {
						t.Errorf("%v\n%s", err, mutant)
					}
				}
				*node = before
			}
		}
	}
}

// values are all values below a node.
func values(node *yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	for i, inner := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			all = append(all, inner)
		}
		all = append(all, values(inner)...)
	}
	return all
}
