package cli

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/conversion"
	"github.com/trainyard/trainyard/internal/document"
)

func convertCommand() *cobra.Command {
	var file, to string
	cmd := &cobra.Command{
		Use:   "convert -f old.yaml > new.yaml",
		Short: "Rewrite a manifest in today's layout, or as a TrainJob",
		Long: `Rewrite a manifest of an older layout (v1beta2, or v1 with policies directly in spec) as today's kubeflow.org/v1 has it.
Comments and the order of fields stay. With --to trainjob a PyTorchJob becomes a TrainJob and the TrainingRuntime it is
made from. What was changed, what behaves differently and what could not be carried over is said on standard error.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return convert(cmd, file, to) },
	}
	addFile(cmd, &file)
	cmd.Flags().StringVar(&to, "to", "v1", "v1, or trainjob")
	return cmd
}

// conversions make of an object what it is to be.
var conversions = map[string]func(*document.Document) ([]*document.Document, []conversion.Note, error){
	"v1": func(doc *document.Document) ([]*document.Document, []conversion.Note, error) {
		notes, err := conversion.ToV1(doc)
		return []*document.Document{doc}, notes, err
	},
	"trainjob": conversion.ToTrainJob,
}

func convert(cmd *cobra.Command, file, to string) error {
	if err := choice("to", to, "v1", "trainjob"); err != nil {
		return err
	}
	docs, err := readFile(cmd, file)
	if err != nil {
		return err
	}
	notes := &printer{Writer: cmd.ErrOrStderr()}
	var converted []*document.Document
	for _, doc := range docs {
		become, said, err := conversions[to](doc)
		if err != nil {
			return badFile(err)
		}
		converted = append(converted, become...)
		for _, n := range said {
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
