package v2beta1_test

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	theirs "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	ours "github.com/trainyard/trainyard/api/kubeflow/v2beta1"
)

// Whatever a client of mpi-operator writes, Kueue for one, it reads the same after it went through our types.
func TestNothingOfMPIOperatorsTypesIsLost(t *testing.T) {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	for seed := range int64(500) {
		var want theirs.MPIJob
		fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), codecs).Fill(&want)
		got := recode[theirs.MPIJob](t, recode[ours.MPIJob](t, want))
		if want = recode[theirs.MPIJob](t, want); !equality.Semantic.DeepEqual(want, got) {
			t.Fatalf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
	}
}

// recode turns a value into JSON and that into another type.
func recode[To any](t *testing.T, from any) To {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var to To
	if err := json.Unmarshal(data, &to); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return to
}
