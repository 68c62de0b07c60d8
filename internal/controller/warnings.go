package controller

import (
	"context"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Quiet lets clients of the configuration log the API server's warnings, but for one: that the version of pod groups which Kubernetes 1.37
// serves will end some day comes with every request for one.
func Quiet(config *rest.Config) {
	config.WarningHandlerWithContext = warnings{log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{})}
}

type warnings struct{ *log.KubeAPIWarningLogger }

func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if !strings.Contains(text, "scheduling.k8s.io/v1beta1") {
		w.KubeAPIWarningLogger.HandleWarningHeaderWithContext(ctx, code, agent, text)
	}
}
