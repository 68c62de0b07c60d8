// Package scalar finds the figures that a training prints in its log: loss, accuracy, learning rate, and the step they belong to.
//
// The grammar is small, so that a person can predict it. A pair is a name, a colon or equals sign (or, for the step, a space), and a number:
//
//	loss=0.31   val/acc: 91.5%   "lr": 1e-4   'eval_loss': 0.2   step 100   Epoch 3/10   loss=nan
//
// A line counts if one of its pairs is a step or has a name that training uses (loss, acc, lr, …). Then all its pairs count. So lines in JSON, Python's
// dictionaries and progress bars are understood, and ports, versions and addresses are not taken for figures.
//
// A program that wants to be sure writes a line with [Marker].
package scalar

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Pair is a figure with its name.
type Pair struct {
	Name  string
	Value float64
}

// Point is what a line says: its figures, and the step they belong to, or else the epoch. Without either the step is NaN.
type Point struct {
	Step  float64
	Pairs []Pair
}

const (
	// maxLine is how much of a line is looked at, maxPairs how many figures of it count.
	maxLine  = 4 << 10
	maxPairs = 32
)

const number = `[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))`

var (
	// pairs are a name and a number. What is before the name and after the number must not be a part of them.
	pairs = regexp.MustCompile(`(?:^|[\s,;|{\[(])["']?([A-Za-z][\w./@-]*)["']?(?:\s?[=:]\s*|\s)(` + number + `)(%?)`)
	// words are the parts of a name: train_loss, eval/Accuracy, lr-0.
	words = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+|\d+`)
)

// steps are the names of a step, the best first. Their numbers may follow a space.
var steps = []string{"global_step", "step", "iteration", "iter", "it", "batch", "epoch"}

// known are words in the names of figures that only a training prints.
var known = []string{
	"loss", "losses", "acc", "accuracy", "lr", "learning_rate", "perplexity", "ppl", "bleu", "rouge", "f1", "auc", "precision", "recall", "mae", "mse", "rmse", "reward", "norm", "iou",
	"throughput", "mfu", "top1", "top5",
}

// Parse finds the figures of a line. It is not ok if there are none.
func Parse(line string) (p Point, ok bool) {
	if p, ok := pushed(line); ok {
		return p, true
	}
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	p.Step = math.NaN()
	best, counts := len(steps), false
	for _, at := range pairs.FindAllStringSubmatchIndex(line, 2*maxPairs) {
		name, value := line[at[2]:at[3]], line[at[4]:at[5]]
		spaced := !strings.ContainsAny(line[at[3]:at[4]], "=:")
		rank := slices.Index(steps, strings.ToLower(name))
		if spaced && rank < 0 && !isKnown(name) || !ends(line[at[7]:], rank >= 0) || len(p.Pairs) == maxPairs {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil && !math.IsInf(v, 0) {
			continue
		}
		switch {
		case rank < 0:
			counts = counts || isKnown(name)
			p.Pairs = append(p.Pairs, Pair{name, v})
		case rank < best:
			best, p.Step = rank, v
		}
	}
	ok = len(p.Pairs) > 0 && (counts || best < len(steps))
	return p, ok
}

// ends reports whether a number ends where this text begins. A step may be followed by how many there are: 3/10.
func ends(after string, step bool) bool {
	if after == "" {
		return true
	}
	if after[0] == '.' { // at the end of a sentence
		return len(after) == 1 || after[1] == ' '
	}
	return strings.ContainsRune(" \t\r,;|}])'\"", rune(after[0])) || step && after[0] == '/' || step && after[0] == ':'
}

// isKnown reports whether a name has a word that training uses.
func isKnown(name string) bool {
	if slices.Contains(known, strings.ToLower(name)) {
		return true
	}
	return slices.ContainsFunc(words.FindAllString(name, -1), func(word string) bool { return slices.Contains(known, strings.ToLower(word)) })
}
