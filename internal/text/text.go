// Package text formats lines for people: it removes terminal control characters from what programs write, and counts things.
package text

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Visible is what a terminal shows of a line that a program overwrites after carriage returns, as progress bars do.
func Visible(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// escape is a terminal's control sequence: one with parameters, one with a text, or a short one.
var escape = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]?|\\][^\a\x1b]*(?:\a|\x1b\\\\)?|[ -/]*[0-Z^-~]?)")

// KeepColours keeps the colours of a line and removes all other control characters. Colours end with the line.
func KeepColours(line string) string {
	if !strings.ContainsFunc(line, unicode.IsControl) {
		return line
	}
	coloured := false
	line = escape.ReplaceAllStringFunc(line, func(sequence string) string {
		if strings.HasPrefix(sequence, "\033[") && strings.HasSuffix(sequence, "m") {
			coloured = true
			return sequence
		}
		return ""
	})
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\033' {
			return -1
		}
		return r
	}, line)
	if coloured {
		line += "\033[0m"
	}
	return line
}

// Plain is a line without control characters and without incomplete UTF-8.
func Plain(line string) string {
	return strings.ReplaceAll(escape.ReplaceAllString(KeepColours(strings.ToValidUTF8(line, "")), ""), "\t", " ")
}

// PlainLines are lines as a terminal shows them, without control characters.
func PlainLines(lines string) string {
	if !strings.ContainsFunc(lines, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		return lines
	}
	all := strings.Split(lines, "\n")
	for i, line := range all {
		all[i] = Plain(Visible(line))
	}
	return strings.Join(all, "\n")
}

// Count is a number of things: 1 retry, 2 retries.
func Count[N int | int32](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
