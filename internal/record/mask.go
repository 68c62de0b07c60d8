package record

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// masked stands for a value that looks like a secret.
const masked = "(masked)"

// secretWords are the words in the name of a variable that make its value a secret.
var secretWords = []string{
	"SECRET", "SECRETS", "TOKEN", "TOKENS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PWD", "PASS", "KEY", "KEYS", "APIKEY", "CREDENTIAL",
	"CREDENTIALS", "AUTH", "AUTHORIZATION", "DSN",
}

// The ends of such words, and of those whose value is a secret whatever it looks like: PGPASSWORD, for example.
var (
	secretEnds   = []string{"TOKEN", "APIKEY", "CREDENTIALS"}
	passwordEnds = []string{"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET"}
)

// secretShapes are what secrets look like whatever their names: tokens of GitHub, Hugging Face, OpenAI, Slack and AWS, JSON web tokens,
// private keys, and passwords in a URL.
var secretShapes = regexp.MustCompile(`\b(gh[pousr]_|github_pat_|hf_|sk-|xox[abprs]-)[A-Za-z0-9_-]{16,}|\b(AKIA|ASIA)[0-9A-Z]{16}\b` +
	`|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/@\s:]*:[^/@\s]+@`)

var wordBoundary = regexp.MustCompile(`[^A-Za-z0-9]+|([a-z0-9])([A-Z])`)

// looksSecret reports whether the value of a variable may be a secret. Numbers and switches are none, unless they are passwords:
// MAX_TOKENS is a setting.
func looksSecret(name, value string) bool {
	words := strings.Fields(strings.ToUpper(wordBoundary.ReplaceAllString(name, "$1 $2")))
	if value != "" && slices.ContainsFunc(words, func(word string) bool { return endsWith(word, passwordEnds) }) {
		return true
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil || value == "" || slices.Contains([]string{"true", "false", "yes", "no"}, strings.ToLower(value)) {
		return false
	}
	if secretShapes.MatchString(value) {
		return true
	}
	if name == "PWD" || name == "OLDPWD" {
		return false // the working directory
	}
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) || endsWith(word, secretEnds) })
}

func endsWith(word string, ends []string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(word, end) })
}

// Mask replaces what looks like a secret in the environments of an object, wherever it has one, and drops kubectl's copy of the object.
func Mask(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
		delete(metadata, "managedFields")
	}
	maskEnv(object)
}

func maskEnv(node any) {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			maskEnv(child)
		}
	case map[string]any:
		for key, child := range n {
			if list, ok := child.([]any); ok && key == "env" {
				maskList(list)
			}
			maskEnv(child)
		}
	}
}

func maskList(list []any) {
	for _, item := range list {
		variable, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name, _ := variable["name"].(string)
		if value, ok := variable["value"].(string); ok && looksSecret(name, value) {
			variable["value"] = masked
		}
	}
}

// MaskedVariable is the first variable in the environments of an object whose value Mask has replaced.
func MaskedVariable(node any) (name string, ok bool) {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if name, ok = MaskedVariable(child); ok {
				return name, true
			}
		}
	case map[string]any:
		if n["value"] == masked {
			name, ok = n["name"].(string)
			return name, ok
		}
		for _, key := range slices.Sorted(maps.Keys(n)) {
			if name, ok = MaskedVariable(n[key]); ok {
				return name, true
			}
		}
	}
	return "", false
}
