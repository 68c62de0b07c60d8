package traceid

import "testing"

func TestATraceContinuesTheOneThatItsJobNames(t *testing.T) {
	const above = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	named := Of("j1", map[string]string{Annotation: above})
	if named.ID != "0af7651916cd43dd8448eb211c80319c" || named.Parent != "b7ad6b7169203331" {
		t.Errorf("the trace is %+v", named)
	}
	if got, want := named.Context(named.Job()), "00-0af7651916cd43dd8448eb211c80319c-"+Of("j1", nil).Job()+"-00"; got != want {
		t.Errorf("a process is told %s, want %s", got, want)
	}
}

func TestEverySpanHasAnIdentifierOfItsOwn(t *testing.T) {
	a, b := Of("j1", nil), Of("j2", nil)
	seen := map[string]bool{}
	for _, id := range []string{a.Job(), b.Job(), a.Attempt(0), a.Attempt(1), a.Replica(0, "worker-0"), a.Replica(0, "worker-1"), a.Replica(1, "worker-0"), a.Span("queued")} {
		if len(id) != 16 || seen[id] || !Valid(a.Context(id)) {
			t.Errorf("span %s", id)
		}
		seen[id] = true
	}
	if a.ID == b.ID {
		t.Errorf("two jobs have the trace %s", a.ID)
	}
}

func TestWhatNamesNoSpan(t *testing.T) {
	for _, text := range []string{
		"", "1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		if Valid(text) || Of("j1", map[string]string{Annotation: text}) != Of("j1", nil) {
			t.Errorf("%q names a span", text)
		}
	}
}
