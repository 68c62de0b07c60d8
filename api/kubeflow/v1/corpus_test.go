package v1_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// Manifests of every era, from the flat layout of the first operators to today's.
func TestManifestsOfEveryEraAreAccepted(t *testing.T) {
	accepted(t, "testdata", 10)
}

// The examples that Training Operator publishes beside its code.
func TestTrainingOperatorsExamplesAreAccepted(t *testing.T) {
	accepted(t, filepath.Join(source(t, "github.com/kubeflow/training-operator"), "examples"), 20)
}

// Those of mpi-operator, of v2beta1.
func TestMPIOperatorsExamplesAreAccepted(t *testing.T) {
	accepted(t, filepath.Join(source(t, "github.com/kubeflow/mpi-operator"), "examples"), 5)
}

// source is the folder of a module that go.mod names.
func source(t *testing.T, module string) string {
	t.Helper()
	var failure bytes.Buffer
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Stderr = &failure
	dir, err := list.Output()
	if err != nil {
		t.Fatalf("finding the source of %s: %v: %s", module, err, failure.String())
	}
	return strings.TrimSpace(string(dir))
}

// accepted gives every job below a folder to the API server and to the Go types. There must be at least so many.
func accepted(t *testing.T, folder string, atLeast int) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range documents(t, data) {
			found++
			t.Run(filepath.Base(path), func(t *testing.T) { acceptedAsItIs(t, parse(t, document)) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < atLeast {
		t.Errorf("found %d manifests below %s, want %d", found, folder, atLeast)
	}
}

// ourKinds are all kinds of the package.
var ourKinds = regexp.MustCompile(`(?m)^kind: *"?(` + strings.Join(kindNames(), "|") + `)"?`)

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := kubeflowv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

func kindNames() []string {
	var names []string
	for name, of := range scheme().KnownTypes(kubeflowv1.GroupVersion) {
		if _, isJob := reflect.New(of).Interface().(kubeflowv1.Job); isJob {
			names = append(names, name)
		}
	}
	return names
}

// documents is the jobs of a YAML stream.
func documents(t *testing.T, stream []byte) []string {
	t.Helper()
	var all []string
	for _, document := range bytes.Split(stream, []byte("\n---")) {
		if ourKinds.Match(document) {
			all = append(all, string(document))
		}
	}
	return all
}

// ofTemplate are fields that some examples give to a pod template as if it were an object. Training Operator's definitions have no such
// fields either.
var ofTemplate = regexp.MustCompile(`\.template\.(apiVersion|kind)$`)

func acceptedAsItIs(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	dropped, refusals := admit(t, object, nil)
	dropped = slices.DeleteFunc(dropped, ofTemplate.MatchString)
	if len(dropped)+len(refusals) > 0 {
		t.Errorf("dropped %q, refused %q", dropped, refusals)
	}
	typed, err := scheme().New(kubeflowv1.GroupVersion.WithKind(object.GetKind()))
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Errorf("the Go type does not hold it: %v", err)
	}
	typed.(kubeflowv1.Job).SetDefaults()
}
