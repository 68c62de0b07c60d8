package cli

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/conversion"
)

func convertCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "convert -f old.yaml > new.yaml",
		Short: "Rewrite a manifest of an older layout as today's kubeflow.org/v1",
		Long: `Rewrite a manifest of an older layout (v1beta2, or v1 with policies directly in spec) as today's kubeflow.org/v1 has it.
Comments and the order of fields stay. What was changed, and what behaves differently, is said on standard error.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return convert(cmd, file) },
	}
	addFile(cmd, &file)
	return cmd
}

func convert(cmd *cobra.Command, file string) error {
	docs, err := readFile(cmd, file)
	if err != nil {
		return err
	}
	notes := &printer{Writer: cmd.ErrOrStderr()}
	for _, doc := range docs {
		said, err := conversion.ToV1(doc)
		if err != nil {
			return badFile(err)
		}
		for _, n := range said {
			notes.printf("%s:%d: %s\n", file, n.Line, n.Text)
		}
	}
	text, err := conversion.Write(docs)
	if err != nil {
		return err
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	out.printf("%s", text)
	return out.err
}
