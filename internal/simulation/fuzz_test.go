package simulation

import "testing"

// FuzzParseScript: whatever a script says, it is read or refused.
func FuzzParseScript(f *testing.F) {
	f.Add(Grammar)
	f.Add("worker-1 exits at\noperator is down from to\n#\n")
	f.Fuzz(func(t *testing.T, text string) {
		script, err := ParseScript(text)
		if err != nil && len(script) > 0 {
			t.Fatalf("a script is read and refused: %v", err)
		}
		for _, e := range script {
			if e.At < 0 || e.Number < 0 {
				t.Fatalf("%+v", e)
			}
		}
	})
}
