package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/conversion"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
)

func convertCommand() *cobra.Command {
	var file, to string
	cmd := &cobra.Command{
		Use:   "convert -f old.yaml > new.yaml",
		Short: "Rewrite a manifest in today's layout, or as a TrainJob",
		Long: `Rewrite a manifest with an older layout (v1beta2, or v1 with policies directly in spec) as kubeflow.org/v1. Comments
and the order of fields stay. With --to trainjob a PyTorchJob becomes a TrainJob and a TrainingRuntime. Standard error
says what was changed, what behaves differently and what could not be converted.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return convert(cmd, file, to) },
	}
	addFile(cmd, &file, "the manifest")
	cmd.Flags().StringVar(&to, "to", "v1", "v1, or trainjob")
	return cmd
}

func convert(cmd *cobra.Command, file, to string) error {
	if err := checkChoice("to", to, "v1", "trainjob"); err != nil {
		return err
	}
	docs, err := readFile(cmd, file)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(docs, conversion.Converts) {
		return usageError{fmt.Errorf("nothing to convert in %s: %s", file, whyNot(docs))}
	}
	notes := &printer{Writer: cmd.ErrOrStderr()}
	var converted []*document.Document
	for _, doc := range docs {
		remarks, err := conversion.ToV1(doc)
		if err != nil {
			return fileError(err)
		}
		if err := checkDocuments(cmd.Context(), file, []*document.Document{doc}, isCertainError); err != nil { // the line numbers are still those of the file
			return err
		}
		become := []*document.Document{doc}
		if to == "trainjob" {
			if become, remarks, err = conversion.ToTrainJob(doc); err != nil {
				return fileError(err)
			}
		}
		converted = append(converted, become...)
		for _, n := range remarks {
			notes.printf("%s:%d: %s\n", file, n.Line, n.Text)
		}
	}
	text, err := conversion.Write(converted)
	if err != nil {
		return err
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s", text)
	return out.err
}

// whyNot says why none of the objects is converted.
func whyNot(docs []*document.Document) string {
	for _, doc := range docs {
		gvk := doc.Object.GroupVersionKind()
		switch kind := kinds.Misplaced(gvk); {
		case kind != nil:
			return fmt.Sprintf("%s is in %s, not in %s: correct it", gvk.Kind, kind.GroupVersion(), gvk.GroupVersion())
		case gvk.Group == kubeflowv1.GroupVersion.Group:
			return fmt.Sprintf("%s cannot be converted: the kinds that can are %s", gvk.Kind, strings.Join(conversion.Kinds(), ", "))
		}
	}
	return "it has no job of the kinds that are converted: " + strings.Join(conversion.Kinds(), ", ")
}
