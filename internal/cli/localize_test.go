package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A TrainJob has no containers, but it can set their environment.
func TestATrainJobStartsWhereTheShellIs(t *testing.T) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		t.Setenv(name, "") // puts it back when the test ends
		_ = os.Unsetenv(name)
	}
	t.Setenv("PATH", "/here")
	t.Setenv("VIRTUAL_ENV", "/$(venv)")
	mine := map[string]any{"name": "PATH", "value": "/mine"}
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "TrainJob", "spec": map[string]any{
		"initializer": map[string]any{"model": map[string]any{"env": []any{mine}}},
	}}}
	if err := localize(obj); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	venv, pwd := map[string]any{"name": "VIRTUAL_ENV", "value": "/$$(venv)"}, map[string]any{"name": "PWD", "value": here}
	own := map[string]any{"name": "TRAINYARD_OWN_ENVIRONMENT", "value": "1"}
	want := map[string]any{
		"trainer":     map[string]any{"env": []any{map[string]any{"name": "PATH", "value": "/here"}, venv, own, pwd}},
		"initializer": map[string]any{"model": map[string]any{"env": []any{mine, venv, own, pwd}}},
	}
	if got := obj.Object["spec"]; !reflect.DeepEqual(got, want) {
		t.Errorf("the spec is %v, want %v", got, want)
	}
}

// Flyte's containers have the command line in args, and the local cluster has no image whose entry point would run it.
func TestArgumentsAreTheCommandWhereThereIsNoImage(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []any
		command any
	}{
		{"a whole command line is run", []any{"pyflyte-execute", "--task"}, []any{"pyflyte-execute", "--task"}},
		{"flags need an entry point, and are left alone", []any{"--epochs", "3"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			container := map[string]any{"args": c.args}
			localizeContainer(container, "/", true)
			if !reflect.DeepEqual(container["command"], c.command) || (container["args"] == nil) != (c.command != nil) {
				t.Errorf("the container is %v", container)
			}
		})
	}
}
