package proof

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// mutator changes objects as their schema has them: to what is allowed, to what is just allowed, and to what is just not.
type mutator struct{ *rand.Rand }

type schemaProps = apiextensionsv1.JSONSchemaProps

// hostile are strings that somebody may write where any string is allowed.
var hostile = []string{
	"", "a", "-", "../../etc/passwd", "$(POD)", "a b", "ä", "日本語", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202eevil", "a\nb", "\x00", "%s%n", "{{.}}",
	strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 254), strings.Repeat("y", 5000), "1", "-1", "1e9", "true", "null", "10m", "1Gi", "http://[::1",
}

// mutate changes one place of an object below a schema.
func (m mutator) mutate(value any, s *schemaProps, name string) any {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case m.IntN(100) < 15 && name != "spec":
	case isObject && len(s.Properties) > 0:
		key := m.key(s.Properties)
		property := s.Properties[key]
		object[key] = m.mutate(object[key], &property, key)
		return object
	case isObject && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		key := m.anyKey(object)
		object[key] = m.mutate(object[key], s.AdditionalProperties.Schema, key)
		return object
	case isList && len(list) > 0 && s.Items != nil:
		i := m.IntN(len(list))
		list[i] = m.mutate(list[i], s.Items.Schema, name)
		return list
	}
	return m.generate(s, name, 3)
}

func (m mutator) key(properties map[string]schemaProps) string {
	return m.one(slices.Sorted(maps.Keys(properties)))
}

// anyKey is one that there is, or a new one.
func (m mutator) anyKey(object map[string]any) string {
	if len(object) > 0 && m.IntN(100) < 80 {
		return m.one(slices.Sorted(maps.Keys(object)))
	}
	return m.one(append([]string{"Worker", "worker", "Master", "Launcher"}, hostile...))
}

func (m mutator) one(from []string) string { return from[m.IntN(len(from))] }

// generate makes a value.
func (m mutator) generate(s *schemaProps, name string, depth int) any {
	switch {
	case s.XIntOrString:
		return []any{1, -1, "1", "50%", "1Gi", "x", "1e1000"}[m.IntN(7)]
	case len(s.Enum) > 0:
		return m.ofEnum(s.Enum)
	case s.Type == "boolean":
		return m.IntN(2) == 0
	case s.Type == "integer", s.Type == "number":
		return m.number(s, name)
	case s.Type == "string":
		return m.one(hostile)
	case s.Type == "array":
		list := []any{}
		for range m.IntN(3) {
			if s.Items != nil && depth > 0 {
				list = append(list, m.generate(s.Items.Schema, name, depth-1))
			}
		}
		return list
	default:
		return m.object(s, depth)
	}
}

func (m mutator) ofEnum(values []apiextensionsv1.JSON) any {
	var value any
	if i := m.IntN(len(values) + 1); i < len(values) {
		_ = json.Unmarshal(values[i].Raw, &value)
		return value
	}
	return "Unknown"
}

// number is a small one, or one at the bounds. Numbers of replicas are small or too large, as pods cost time.
func (m mutator) number(s *schemaProps, name string) any {
	numbers := []int64{0, 1, 2, -1}
	if lower := strings.ToLower(name); strings.Contains(lower, "replicas") || strings.Contains(lower, "nodes") {
		return append(numbers, 3, 1<<31-1)[m.IntN(6)]
	}
	numbers = append(numbers, 1<<31-1, 1<<31, 1<<62, -1<<31)
	if s.Minimum != nil {
		numbers = append(numbers, int64(*s.Minimum), int64(*s.Minimum)-1)
	}
	if s.Maximum != nil {
		numbers = append(numbers, int64(*s.Maximum), int64(*s.Maximum)+1)
	}
	return numbers[m.IntN(len(numbers))]
}

func (m mutator) object(s *schemaProps, depth int) map[string]any {
	object := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[key]
		if depth > 0 && (slices.Contains(s.Required, key) || m.IntN(len(s.Properties)) < 2) {
			object[key] = m.generate(&property, key, depth-1)
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && depth > 0 {
		object[m.one(hostile)] = m.generate(s.AdditionalProperties.Schema, "", depth-1)
	}
	return object
}
