package text

import "testing"

func TestVisibleIsWhatATerminalShows(t *testing.T) {
	for line, want := range map[string]string{
		"plain": "plain", "ends with a return\r": "ends with a return", "10%\r50%\r100%": "100%", "10%\r100%\r": "100%", "\r": "", "": "",
	} {
		if got := Visible(line); got != want {
			t.Errorf("of %q it shows %q, want %q", line, got, want)
		}
	}
}

func TestPlainLinesHaveNoControlCharacters(t *testing.T) {
	for lines, want := range map[string]string{
		"Traceback:\n  File \"train.py\"\n":       "Traceback:\n  File \"train.py\"\n",
		"10%\r100%\r\n\x1b[A\x1b[31mred\x1b[0m\n": "100%\nred\n",
		"title\x1b]0;mine\a\nbell\a":              "title\nbell",
	} {
		if got := PlainLines(lines); got != want {
			t.Errorf("of %q is left %q, want %q", lines, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int32]string{0: "0 retries", 1: "1 retry", 2: "2 retries"} {
		if got := Count(n, "retry", "retries"); got != want {
			t.Errorf("%d are %q, want %q", n, got, want)
		}
	}
}
