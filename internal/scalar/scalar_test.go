package scalar

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, row := range []struct{ sentence, line, want string }{
		{"a step and a loss", "step 100 loss: 0.31", "100: loss 0.31"},
		{"with equals signs", "step=100 loss=0.31 lr=1e-4", "100: loss 0.31, lr 0.0001"},
		{"an epoch of several", "Epoch 3/10 - loss: 0.42 - accuracy: 0.91", "3: loss 0.42, accuracy 0.91"},
		{"an epoch with a colon", "Epoch 3: train_loss=0.42, val_loss=0.5", "3: train_loss 0.42, val_loss 0.5"},
		{"the step counts more than the epoch", "epoch 1 step 200 loss 0.5", "200: loss 0.5"},
		{"JSON", `{"step": 7, "loss": 2.5e-1, "tokens": 4096}`, "7: loss 0.25, tokens 4096"},
		{"a Python dictionary, as Hugging Face's trainer prints it", "{'loss': 0.31, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.25}", "0.25: loss 0.31, grad_norm 1.5, learning_rate 1e-05"},
		{"a progress bar", "Epoch 2: 100%|████| 10/10 [00:01<00:00, 9.1it/s, loss=0.2, v_num=3]", "2: loss 0.2, v_num 3"},
		{"a loss without a step", "val/loss: 0.7", "NaN: val/loss 0.7"},
		{"per cent", "test accuracy: 91.5%", "NaN: accuracy 91.5"},
		{"a logger's prefix", "2026-11-16 03:04:05,678 INFO train: step=5 loss=1.0", "5: loss 1"},
		{"a loss that is no number", "step 9 loss=nan", "9: loss NaN"},
		{"an infinite loss", "step 9 loss=inf", "9: loss +Inf"},
		{"the end of a sentence", "The loss is: no, loss = 0.5.", "NaN: loss 0.5"},
		{"a name in camel case", "trainLoss=3", "NaN: trainLoss 3"},

		{"what is reported on purpose, by any name", `trainyard-scalars {"step": 100, "tokens": 4.2e9, "expert balance": 0.93, "phase": "warm-up"}`, "100: expert balance 0.93, tokens 4.2e+09"},
		{"reported without a step", `trainyard-scalars {"queue": 3}`, "NaN: queue 3"},
		{"reported through a logger", `12:30:45 INFO trainyard-scalars {"global_step": 5, "epoch": 1, "depth": 2}`, "5: depth 2"},
		{"reported numbers that JSON does not have", `trainyard-scalars {"it": 1, "a": NaN, "b": -Infinity}`, "1: a NaN, b -Inf"},
		{"not JSON, but figures", "trainyard-scalars step 3 loss=0.5", "3: loss 0.5"},
		{"nothing that is a number", `trainyard-scalars {"phase": "warm-up", "done": true}`, ""},
		{"JSON that is cut", `trainyard-scalars {"queue": 3`, ""},

		{"an address", "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500", ""},
		{"a time", "at 12:30:45 port: 29500", ""},
		{"a version", "torch=2.6.0 loss=1.2.3", ""},
		{"a step alone", "step 100", ""},
		{"words", "The loss of worker 1 is a loss", ""},
		{"an identifier", "loss_id=12ab", ""},
		{"a length", "batch 10 size=10MB", ""},
		{"nothing", "", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := ""
			if p, ok := Parse(row.line); ok {
				var parts []string
				for _, pair := range p.Pairs {
					parts = append(parts, fmt.Sprint(pair.Name, " ", pair.Value))
				}
				got = fmt.Sprintf("%v: %s", p.Step, strings.Join(parts, ", "))
			}
			if got != row.want {
				t.Errorf("%q gives %q, want %q", row.line, got, row.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("step 100 loss: 0.31")
	f.Add(strings.Repeat("loss=1,", 10_000))
	f.Add(`trainyard-scalars {"step": 1, "a": NaN}`)
	f.Fuzz(func(t *testing.T, line string) {
		if p, ok := Parse(line); ok && (len(p.Pairs) == 0 || len(p.Pairs) > maxSeries) {
			t.Errorf("%q has %d figures", line, len(p.Pairs))
		}
	})
}

func TestALongSeriesKeepsItsCourse(t *testing.T) {
	var c Collection
	begin := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	const steps = 100_000
	for i := range steps {
		c.Add(fmt.Sprintf("step %d loss=%d", i, steps-i), begin.Add(time.Duration(i)*time.Second))
	}
	s := c.Series[0]
	if len(c.Series) != 1 || len(s.Values) < maxPoints/4 || len(s.Values) > maxPoints || len(s.Steps) != len(s.Values) || len(s.Times) != len(s.Values) {
		t.Fatalf("%d series, %d points", len(c.Series), len(s.Values))
	}
	for i := range s.Values {
		if s.Values[i] != steps-s.Steps[i] || i > 0 && s.Steps[i] <= s.Steps[i-1] {
			t.Fatalf("point %d is step %v, loss %v", i, s.Steps[i], s.Values[i])
		}
	}
	if last := s.Steps[len(s.Steps)-1]; last < steps*0.99 {
		t.Errorf("the last point is step %v", last)
	}
	for i := range 1000 {
		c.Add(fmt.Sprintf("loss%d=1 loss=2", i), begin)
	}
	if len(c.Series) != maxSeries {
		t.Errorf("%d series", len(c.Series))
	}
}

// A loss that has diverged prints nan for long. What was before stays, and so does what comes after.
func TestManyValuesThatAreNoNumbersKeepTheOthers(t *testing.T) {
	var c Collection
	for i := range 200_000 {
		value := "nan"
		if i < 1000 || i >= 150_000 {
			value = "1"
		}
		c.Add(fmt.Sprintf("step %d loss=%s", i, value), time.Time{})
	}
	early, late := 0, 0
	for i, step := range c.Series[0].Steps {
		switch {
		case math.IsNaN(c.Series[0].Values[i]):
		case step < 1000:
			early++
		default:
			late++
		}
	}
	if early < 3 || late < 100 {
		t.Errorf("%d values are left from before, %d from after", early, late)
	}
}

func TestLinesWithoutAStepAreCounted(t *testing.T) {
	var c Collection
	for range 3 {
		c.Add("loss=1", time.Time{})
	}
	if got := fmt.Sprint(c.Series[0].Steps); got != "[0 1 2]" {
		t.Errorf("the steps are %s", got)
	}
}
