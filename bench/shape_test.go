package main

import "testing"

func TestShapes(t *testing.T) {
	for text, want := range map[string]shape{"100x4": {jobs: 100, pods: 4}, " 1x1000 ": {jobs: 1, pods: 1000}, "mix3200": {jobs: 362, mixed: 3200}} {
		s, err := parseShape(text)
		if err != nil || s != want {
			t.Errorf("%q is %+v, %v", text, s, err)
		}
		total := 0
		for n := range s.jobs {
			total += s.size(n)
		}
		if total != s.total() {
			t.Errorf("the jobs of %s have %d pods together, want %d", s, total, s.total())
		}
	}
	for _, text := range []string{"", "4", "x4", "0x4", "3x1", "mix", "mix100"} {
		if s, err := parseShape(text); err == nil {
			t.Errorf("%q is %s", text, s)
		}
	}
}
