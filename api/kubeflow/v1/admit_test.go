package v1_test

import "github.com/trainyard/trainyard/internal/testing/admission"

// admit gives an object to the API server, parse reads one.
var admit, parse = admission.Admit, admission.Parse
