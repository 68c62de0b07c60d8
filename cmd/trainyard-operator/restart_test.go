package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An operator that ends because of the API server starts again by itself; one that was started wrongly ends.
func TestWhichEndsAreTemporary(t *testing.T) {
	_, refused := http.Get("http://127.0.0.1:1/") // nobody listens there
	for _, row := range []struct {
		sentence string
		err      error
		want     bool
	}{
		{"the lease could not be renewed", errors.New("leader election lost"), true},
		{"nobody listens", fmt.Errorf("setting up PyTorchJob: %w", refused), true},
		{"the API server is overloaded", apierrors.NewServiceUnavailable("later"), true},
		{"a right is missing", apierrors.NewUnauthorized("no"), false},
		{"a kind is missing", errors.New(`no matches for kind "PyTorchJob"`), false},
	} {
		if got := temporary(row.err); got != row.want {
			t.Errorf("%s: temporary %v", row.sentence, got)
		}
	}
}
