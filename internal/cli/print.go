package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// printer keeps the first error of several writes.
type printer struct {
	io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.Writer, format, args...)
	}
}

// printObjects prints objects as YAML or JSON, without their status.
func printObjects(out *printer, objects []runtime.Object, format string) error {
	return printEach(out, objects, format, func(content map[string]any) { delete(content, "status") })
}

// printWhole prints objects with their status.
func printWhole(out *printer, objects []runtime.Object, format string) error {
	return printEach(out, objects, format, func(map[string]any) {})
}

func printAll(cmd *cobra.Command, objects []*unstructured.Unstructured) error {
	out := &printer{Writer: cmd.OutOrStdout()}
	var all []runtime.Object
	for _, obj := range objects {
		all = append(all, obj)
	}
	if err := printObjects(out, all, "yaml"); err != nil {
		return err
	}
	return out.err
}

func printEach(out *printer, objects []runtime.Object, format string, change func(map[string]any)) error {
	plain := []any{}
	for _, obj := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return err
		}
		change(content)
		plain = append(plain, content)
	}
	if format == "json" {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": plain}, "", "  ")
		out.printf("%s\n", text)
		return err
	}
	for _, content := range plain {
		text, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		out.printf("---\n%s", text)
	}
	return nil
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}
