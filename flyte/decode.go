package flyte

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// DecodeTask reads a task in any form: a TaskTemplate, the TaskSpec that wraps one in the files of pyflyte
// package, or TaskTemplate.custom alone; as JSON, as protobuf, or as base64 of either. A custom alone has no pod.
func DecodeTask(data []byte) (Task, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		return decodeJSON(text)
	} else if raw, err := base64.StdEncoding.DecodeString(string(text)); err == nil {
		if text := bytes.TrimSpace(raw); len(text) > 0 && text[0] == '{' {
			return decodeJSON(text)
		}
		return decodeWire(raw)
	}
	return decodeWire(data)
}

func decodeJSON(data []byte) (Task, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return Task{}, fmt.Errorf("decode task: it is not JSON: %w", err)
	}
	if inner, ok := keys["template"]; ok {
		return decodeJSON(inner)
	}
	_, hasType := keys["type"]
	if _, hasCustom := keys["custom"]; !hasType && !hasCustom {
		custom, err := ParseCustomJSON(guessType(keys), 1, data)
		return Task{Custom: custom}, err
	}
	template := new(core.TaskTemplate)
	warnings, err := unmarshalStrict(data, template)
	if err != nil {
		return Task{}, fmt.Errorf("decode task: %w", err)
	}
	task, err := ReadTask(template)
	task.Warnings = append(warnings, task.Warnings...)
	return task, err
}

// guessType recognises a plugin message by the roles that only it has.
func guessType[V any](keys map[string]V) TaskType {
	for key := range keys {
		switch key {
		case "psReplicas", "ps_replicas", "chiefReplicas", "chief_replicas", "evaluatorReplicas", "evaluator_replicas":
			return TensorFlowTask
		case "launcherReplicas", "launcher_replicas", "slots":
			return MPITask
		}
	}
	return PyTorchTask
}

var errNoTask = errors.New("decode task: it is neither JSON nor base64 nor a protobuf TaskTemplate, TaskSpec or Struct")

// decodeWire tries one message type after the other, because protobuf does not contain its type. The result is unambiguous: a task
// has a type, and no key of a custom can be read as the identifier with which a task begins.
func decodeWire(data []byte) (Task, error) {
	if template, ok := wireTemplate(data); ok {
		return ReadTask(template)
	}
	if number, kind, n := protowire.ConsumeTag(data); n > 0 && number == 1 && kind == protowire.BytesType {
		if inner, m := protowire.ConsumeBytes(data[n:]); m > 0 {
			if template, ok := wireTemplate(inner); ok {
				return ReadTask(template)
			}
		}
	}
	custom := new(structpb.Struct)
	if err := proto.Unmarshal(data, custom); err != nil || len(custom.GetFields()) == 0 {
		return Task{}, errNoTask
	}
	read, err := ParseCustom(guessType(custom.GetFields()), 1, custom)
	return Task{Custom: read}, err
}

func wireTemplate(data []byte) (*core.TaskTemplate, bool) {
	template := new(core.TaskTemplate)
	err := proto.Unmarshal(data, template)
	return template, err == nil && template.GetType() != ""
}
