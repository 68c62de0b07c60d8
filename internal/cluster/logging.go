package cluster

import (
	"flag"
	"io"

	"k8s.io/klog/v2"
)

// logTo sends what the components log to a writer.
func logTo(w io.Writer) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("alsologtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	_ = flags.Set("one_output", "true")
	klog.SetOutput(w)
	klog.ClearLogger()
}
