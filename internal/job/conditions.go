package job

import (
	"cmp"
	"slices"
	"time"
)

// ConditionType is one of the six states a job reports.
type ConditionType string

// The condition types of Training Operator 1.9.
const (
	Created    ConditionType = "Created"
	Running    ConditionType = "Running"
	Restarting ConditionType = "Restarting"
	Suspended  ConditionType = "Suspended"
	Succeeded  ConditionType = "Succeeded"
	Failed     ConditionType = "Failed"
)

// Condition is one state of a job: whether it holds, since when and why.
type Condition struct {
	Type                       ConditionType
	Status                     bool
	Reason, Message            string
	LastUpdate, LastTransition time.Time
}

// Is reports whether the condition holds.
func (s *Status) Is(t ConditionType) bool {
	c := s.condition(t)
	return c != nil && c.Status
}

// Finished reports whether the verdict was given.
func (s *Status) Finished() bool { return s.Is(Succeeded) || s.Is(Failed) }

func (s *Status) condition(t ConditionType) *Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// set makes a condition true, as the newest of the list. One that is true already only gets its words renewed.
func (s *Status) set(t ConditionType, reason, message string, now time.Time) {
	if c := s.condition(t); c != nil && c.Status {
		if c.Reason != reason || c.Message != message {
			c.Reason, c.Message, c.LastUpdate = reason, message, ceil(now)
		}
		return
	}
	s.unset(t)
	at := s.nextTransition(now)
	s.Conditions = append(s.Conditions, Condition{t, true, reason, message, at, at})
	s.orderConditions()
}

// clear makes a condition that holds false.
func (s *Status) clear(t ConditionType, reason, message string, now time.Time) {
	c := s.condition(t)
	if c == nil || !c.Status {
		return
	}
	at := s.nextTransition(now)
	*c = Condition{t, false, reason, message, at, at}
	s.orderConditions()
}

// renew lets a condition that holds do so from now on.
func (s *Status) renew(t ConditionType, now time.Time) {
	if c := s.condition(t); c != nil && c.Status {
		at := s.nextTransition(now)
		c.LastUpdate, c.LastTransition = at, at
		s.orderConditions()
	}
}

// unset removes a condition.
func (s *Status) unset(t ConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c Condition) bool { return c.Type == t })
}

// nextTransition is now, but at least a second after the latest transition: readers such as Flyte take the newest by
// its time, which has whole seconds, and of two in one second the wrong one.
func (s *Status) nextTransition(now time.Time) time.Time {
	at := now.UTC().Truncate(time.Second)
	for _, c := range s.Conditions {
		if earliest := c.LastTransition.Add(time.Second); earliest.After(at) {
			at = earliest
		}
	}
	return at
}

// orderConditions puts the conditions that hold last, the newest at the end: the State column shows the last of the
// list, whether it holds or not. Created is first, where clients of Training Operator expect it, unless nothing else holds. Suspended is
// last whenever it holds: Created is renewed after it, because Flyte 2, which goes by the times, knows no Suspended, and of a job that is
// Created it knows that it waits.
func (s *Status) orderConditions() {
	others := slices.ContainsFunc(s.Conditions, func(c Condition) bool { return c.Status && c.Type != Created })
	place := func(c Condition) int {
		switch {
		case c.Type == Created && others:
			return 0
		case !c.Status:
			return 1
		case c.Type != Suspended:
			return 2
		default:
			return 3
		}
	}
	slices.SortStableFunc(s.Conditions, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), a.LastTransition.Compare(b.LastTransition))
	})
}
