package flyte

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unmarshalStrict decodes JSON into m. protojson either refuses unknown fields or drops unknown enum names with them, and
// names no path; so the JSON is first compared with the message's descriptor, and then protojson decodes it.
func unmarshalStrict(data []byte, m proto.Message) ([]Warning, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not JSON: there is more after its end")
	}
	var c comparison
	if err := c.message("", m.ProtoReflect().Descriptor(), value); err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return nil, err
	}
	return c.warnings, nil
}

// comparison compares a decoded JSON value with a message descriptor.
type comparison struct {
	warnings []Warning
}

func (c *comparison) message(path string, md protoreflect.MessageDescriptor, value any) error {
	if strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
		return nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: want an object, have %s", orWhole(path), kindOf(value))
	}
	given := map[protoreflect.FieldNumber]string{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		fd := fieldByName(md, key)
		if fd == nil {
			c.warnings = append(c.warnings, warn(UnknownField, join(path, key), "%s has no such field: Flyte ignores it", md.Name()))
			continue
		}
		if other, twice := given[fd.Number()]; twice {
			return fmt.Errorf("%s: given twice, as %s and as %s", join(path, fd.JSONName()), other, key)
		}
		given[fd.Number()] = key
		if err := c.field(join(path, fd.JSONName()), fd, object[key]); err != nil {
			return err
		}
	}
	return nil
}

func fieldByName(md protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByJSONName(key); fd != nil {
		return fd
	}
	return md.Fields().ByTextName(key)
}

// field treats null as unset, as Flyte's decoder does.
func (c *comparison) field(path string, fd protoreflect.FieldDescriptor, value any) error {
	switch {
	case value == nil:
		return nil
	case fd.IsMap():
		if fd.MapValue().Kind() != protoreflect.MessageKind {
			return nil
		}
		entries, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: want an object, have %s", path, kindOf(value))
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if err := c.message(join(path, key), fd.MapValue().Message(), entries[key]); err != nil {
				return err
			}
		}
		return nil
	case fd.IsList():
		items, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s: want a list, have %s", path, kindOf(value))
		}
		for i, item := range items {
			if err := c.single(fmt.Sprintf("%s[%d]", path, i), fd, item); err != nil {
				return err
			}
		}
		return nil
	}
	return c.single(path, fd, value)
}

func (c *comparison) single(path string, fd protoreflect.FieldDescriptor, value any) error {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return c.message(path, fd.Message(), value)
	case protoreflect.EnumKind:
		return knownEnum(path, fd.Enum(), value)
	case protoreflect.Int32Kind:
		n, err := wholeNumber(path, value)
		if _, policy := zeroMeans[path]; policy && err == nil && n == 0 {
			c.warnings = append(c.warnings, zeroLost(path))
		}
		return err
	case protoreflect.StringKind:
		if _, ok := value.(string); !ok {
			return fmt.Errorf("%s: want a string, have %s", path, kindOf(value))
		}
	}
	return nil
}

// knownEnum accepts the names and numbers of the enum. Flyte's backend keeps an unknown number and then ignores it.
func knownEnum(path string, ed protoreflect.EnumDescriptor, value any) error {
	switch v := value.(type) {
	case string:
		if ed.Values().ByName(protoreflect.Name(v)) != nil {
			return nil
		}
	case json.Number:
		n, err := wholeNumber(path, v)
		if err != nil {
			return err
		}
		if ed.Values().ByNumber(protoreflect.EnumNumber(n)) != nil {
			return nil
		}
	}
	var names []string
	for i := range ed.Values().Len() {
		names = append(names, string(ed.Values().Get(i).Name()))
	}
	last := len(names) - 1
	return fmt.Errorf("%s: %s is unknown: want %s or %s", path, kindOf(value), strings.Join(names[:last], ", "), names[last])
}

// wholeNumber accepts a number, or one in a string, that is a whole int32 and not negative: Flyte has no negative numbers.
func wholeNumber(path string, value any) (int32, error) {
	text := ""
	switch v := value.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	default:
		return 0, fmt.Errorf("%s: want a whole number, have %s", path, kindOf(value))
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), n != n:
		return 0, fmt.Errorf("%s: want a whole number, have %s", path, kindOf(value))
	case n < 0:
		return 0, fmt.Errorf("%s: %s is negative", path, text)
	case n > math.MaxInt32:
		return 0, fmt.Errorf("%s: %s is too large: at most %d", path, text, math.MaxInt32)
	case n != math.Trunc(n):
		return 0, fmt.Errorf("%s: %s is not a whole number", path, text)
	}
	return int32(n), nil
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(value)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orWhole(path string) string {
	if path == "" {
		return "the whole"
	}
	return path
}

// unknownOnWire names the messages with field numbers that this version of Flyte's types does not have.
func unknownOnWire(m proto.Message) []Warning {
	var warnings []Warning
	_ = protorange.Range(m.ProtoReflect(), func(v protopath.Values) error {
		if part, ok := v.Index(-1).Value.Interface().(protoreflect.Message); ok && len(part.GetUnknown()) > 0 {
			path := strings.TrimPrefix(v.Path[1:].String(), ".")
			warnings = append(warnings, warn(UnknownField, path, "%s has unknown fields", part.Descriptor().Name()))
		}
		return nil
	})
	return warnings
}
