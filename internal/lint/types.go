package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fix reports every value of another type than the schema wants. It returns what is likely meant, or drops the value where
// that is unclear, so that the rest of the object can be checked. Fields that the schema does not have are left as they are.
func (c *checker) fix(path string, value any, s *structural.Structural) (meant any, keep bool) {
	if value == nil || s == nil {
		return value, true // null is the same as absent
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Type == "object" || s.Type == "" && !s.XIntOrString {
			c.fixFields(path, v, s)
			return v, true
		}
	case []any:
		if s.Type == "array" || s.Type == "" && !s.XIntOrString {
			return c.fixItems(path, v, s), true
		}
	default:
		message, meant, keep := c.fixScalar(path, v, s)
		if message == "" {
			return value, true
		}
		c.add(Error, path, "%s", message)
		if !keep {
			c.dropped = append(c.dropped, path)
		}
		return meant, keep
	}
	c.add(Error, path, "%s is needed here, and this is %s", typeName(s), valueName(value))
	c.dropped = append(c.dropped, path)
	return nil, false
}

func (c *checker) fixFields(path string, fields map[string]any, s *structural.Structural) {
	for name, value := range fields {
		var inner *structural.Structural
		if property, known := s.Properties[name]; known {
			inner = &property
		} else if s.AdditionalProperties != nil {
			inner = s.AdditionalProperties.Structural
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if meant, keep := c.fix(at, value, inner); keep {
			fields[name] = meant
		} else {
			delete(fields, name)
		}
	}
}

func (c *checker) fixItems(path string, items []any, s *structural.Structural) []any {
	fixed := []any{}
	for i, value := range items {
		if meant, keep := c.fix(fmt.Sprintf("%s[%d]", path, i), value, s.Items); keep {
			fixed = append(fixed, meant)
		} else {
			fixed = append(fixed, nil) // the others keep their indexes
		}
	}
	return fixed
}

// fixScalar says what is wrong with a plain value, nothing if it is right, and what is meant where that is known.
func (c *checker) fixScalar(path string, value any, s *structural.Structural) (message string, meant any, keep bool) {
	written := c.doc.Written(path)
	if written == "" {
		written = fmt.Sprint(value)
	}
	text, isText := value.(string)
	_, isBoolean := value.(bool)
	_, isWhole := value.(int64)
	isNumber := !isText && !isBoolean
	switch {
	case s.XIntOrString:
		return fixQuantity(path, written, value, s)
	case s.Type == "string" && isBoolean:
		return fmt.Sprintf("%s is a boolean in YAML: quote it, %q", written, written), written, true
	case s.Type == "string" && isNumber:
		return fmt.Sprintf("%s is a number in YAML: quote it, %q", written, written), written, true
	case (s.Type == "integer" || s.Type == "number") && isText:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return fmt.Sprintf("%q is text in YAML: remove the quotes", text), n, true
		}
		return fmt.Sprintf("%q is no number", text), nil, false
	case s.Type == "integer" && (isBoolean || !isWhole):
		return written + " is no whole number", nil, false
	case s.Type == "number" && isBoolean:
		return written + " is no number", nil, false
	case s.Type == "boolean" && (text == "true" || text == "false"):
		return fmt.Sprintf("%q is text in YAML: remove the quotes", text), text == "true", true
	case s.Type == "boolean" && !isBoolean:
		return written + " is no boolean: use true or false", nil, false
	case s.Type == "array" && isText:
		return fmt.Sprintf("a list is needed here, as in [%s]", strings.Join(strings.Fields(text), ", ")), nil, false
	case s.Type == "array" || s.Type == "object":
		return fmt.Sprintf("%s is needed here, and this is %s", typeName(s), valueName(value)), nil, false
	}
	return "", value, true
}

// fixQuantity is about what may be a whole number or text: quantities, and ports by number or name.
func fixQuantity(path, written string, value any, s *structural.Structural) (message string, meant any, keep bool) {
	isQuantity := s.ValueValidation != nil && strings.Contains(s.ValueValidation.Pattern, "KMGTPE")
	countable := isQuantity && strings.Contains(path[strings.LastIndex(path, ".")+1:], "/") // as in nvidia.com/gpu
	switch v := value.(type) {
	case bool:
		return fmt.Sprintf("%s is a boolean in YAML, and a number is needed", written), nil, false
	case float64:
		if countable {
			return written + " is no whole number", nil, false
		}
		return fmt.Sprintf("%s is no whole number, and others must be quoted: %q", written, written), written, true
	case string:
		if _, err := resource.ParseQuantity(v); isQuantity && err != nil {
			return fmt.Sprintf("%q is no quantity: use %s", v, quantityLike(v)), nil, false
		}
	}
	return "", value, true
}

var sized = regexp.MustCompile(`^([0-9.]+)\s*([kKmMgGtTpP])[iI]?[bB]?$`)

// quantityLike is the correct notation of the quantity that may be meant.
func quantityLike(text string) string {
	parts := sized.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return "a number, as in 2, 500m or 4Gi"
	}
	binary := strings.ToUpper(parts[2])
	decimal := binary
	if decimal == "K" {
		decimal = "k"
	}
	return fmt.Sprintf("%[1]s%[2]si or %[1]s%[3]s", parts[1], binary, decimal)
}

func typeName(s *structural.Structural) string {
	switch s.Type {
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "integer", "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "":
		return "a number or text"
	}
	return "text"
}

func valueName(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "a boolean"
	}
	return "a number"
}
