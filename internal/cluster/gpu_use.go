package cluster

import (
	"context"
	"encoding/csv"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// gpuUse is what a GPU does now: which part of the time it computes, and how many bytes of its memory are taken.
type gpuUse struct {
	busy   float64
	memory uint64
}

// gpuUseTimeout is how long nvidia-smi may take to tell it. Readings are 5 s apart.
const gpuUseTimeout = 4 * time.Second

// addUse adds to containers what the GPUs do that they hold. Where no container holds one, nobody is asked.
func (g *gpuManager) addUse(ctx context.Context, usage []containerUsage) {
	held := g.heldBy(usage)
	if len(held) == 0 || !g.asking.CompareAndSwap(false, true) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, gpuUseTimeout)
	defer cancel()
	told := make(chan map[string]gpuUse, 1)
	go func() { // with a broken driver nvidia-smi does not end
		defer g.asking.Store(false)
		out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits").Output()
		if err == nil {
			told <- parseGPUUse(string(out))
		}
		close(told)
	}()
	select {
	case uses := <-told:
		for i, gpus := range held {
			for _, gpu := range gpus {
				usage[i].GPU, usage[i].GPUMemory = usage[i].GPU+uses[gpu].busy, usage[i].GPUMemory+uses[gpu].memory
			}
		}
	case <-ctx.Done():
	}
}

// heldBy are the GPUs of containers, by their place in the list.
func (g *gpuManager) heldBy(usage []containerUsage) map[int][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := map[int][]string{}
	for holder, gpus := range g.given {
		for i, u := range usage {
			if u.PodUID == string(holder.pod) && u.Container == holder.container {
				held[i] = gpus
			}
		}
	}
	return held
}

// parseGPUUse reads lines with a GPU's UUID, how many per cent of the time it computed, and how many MiB of its memory are taken. What a GPU cannot tell
// is "[N/A]", and counts as 0.
func parseGPUUse(table string) map[string]gpuUse {
	uses := map[string]gpuUse{}
	lines := csv.NewReader(strings.NewReader(table))
	lines.TrimLeadingSpace, lines.FieldsPerRecord = true, -1
	rows, _ := lines.ReadAll() // what was read before an error counts
	for _, row := range rows {
		if len(row) != 3 {
			continue
		}
		busy, _ := strconv.ParseFloat(row[1], 64)
		memory, _ := strconv.ParseUint(row[2], 10, 64)
		uses[row[0]] = gpuUse{busy / 100, memory << 20}
	}
	return uses
}
