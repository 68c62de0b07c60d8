package local

import "testing"

// Run runs a subtest in the same namespace, whose failures are its own. Pods that several subtests look at are created
// before the first, so that all of them are waited for at once.
func (w *World) Run(t *testing.T, name string, f func(t *testing.T, w *World)) {
	t.Run(name, func(t *testing.T) {
		inner := *w
		inner.TB = t
		f(t, &inner)
	})
}
