package job

import (
	"strings"
	"testing"
	"time"
)

// show is the list as kubectl's State column and Flyte read it: in order, false ones in brackets.
func show(s Status) string {
	var words []string
	for _, c := range s.Conditions {
		word := string(c.Type)
		if !c.Status {
			word = "(" + word + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestConditions(t *testing.T) {
	for _, row := range []struct {
		sentence string
		live     func(s *Status)
		want     string
	}{
		{"the newest that holds is last", func(s *Status) { s.set(Running, "", "", epoch) }, "Created Running"},
		{"one that no longer holds goes before Created if nothing else holds, so that State shows Created", func(s *Status) {
			s.set(Suspended, "", "", epoch)
			s.clear(Suspended, "Resumed", "", epoch)
		}, "(Suspended) Created"},
		{"a suspended job shows that it is, though Created is newer", func(s *Status) {
			s.set(Suspended, "", "", epoch)
			s.renew(Created, epoch)
		}, "Created Suspended"},
		{"the end of a job", func(s *Status) {
			s.set(Running, "", "", epoch)
			s.clear(Running, "", "", epoch)
			s.set(Succeeded, "", "", epoch)
		}, "Created (Running) Succeeded"},
		{"set twice, there once", func(s *Status) {
			s.set(Running, "", "", epoch)
			s.set(Running, "", "again", epoch)
		}, "Created Running"},
		{"what never held is not made false", func(s *Status) { s.clear(Running, "", "", epoch) }, "Created"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var s Status
			s.set(Created, "", "", epoch)
			row.live(&s)
			if got := show(s); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestTransitionsRiseByASecond(t *testing.T) {
	var s Status
	for _, c := range []ConditionType{Created, Running, Succeeded} {
		s.set(c, "", "", epoch.Add(300*time.Millisecond))
	}
	for i, c := range s.Conditions {
		if want := epoch.Add(time.Duration(i) * time.Second); !c.LastTransition.Equal(want) {
			t.Errorf("%s at %s, want %s", c.Type, c.LastTransition, want)
		}
	}
}

func TestWordsAreRenewedWithoutATransition(t *testing.T) {
	var s Status
	s.set(Restarting, "r", "worker 1", epoch)
	s.set(Restarting, "r", "worker 2", epoch.Add(time.Minute))
	c := s.Conditions[0]
	if c.Message != "worker 2" || !c.LastTransition.Equal(epoch) || !c.LastUpdate.Equal(epoch.Add(time.Minute)) {
		t.Errorf("%+v", c)
	}
}
