package cluster_test

import (
	"testing"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestMain(m *testing.M) { local.Main(m) }
