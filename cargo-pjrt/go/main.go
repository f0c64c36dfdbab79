// Runs the programs of `cargo pjrt test` with GoMLX's client of PJRT, compares their results, and reports the outcomes.
//
// Standard input is the pipe to `cargo pjrt test`, to which each line is a JSON object. The hosts in Python have the same protocol.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/gomlx/go-xla/pkg/pjrt"
)

// request is the first argument.
type request struct {
	Platform  string         `json:"platform"`
	Options   map[string]any `json:"options"`
	Programs  []string       `json:"programs"`
	Tolerance float64        `json:"tolerance"`
}

// array is an argument or a result.
type array struct {
	dims   []int
	values []float32
}

// program has one result. With steps, its result is the first argument of the next step.
type program struct {
	text      string
	arguments []array
	donated   bool
	steps     int
	// expected returns the result of one step.
	expected func(arguments []array) []float64
}

// refusal is the error of a compilation.
type refusal struct{ error }

func send(kind, name string, facts map[string]any) {
	message := map[string]any{"kind": kind}
	if name != "" {
		message["program"] = name
	}
	for key, value := range facts {
		message[key] = value
	}
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdin, "%s\n", line)
}

// values returns the numbers of an argument: small, of both signs.
func values(scale float32, dims ...int) array {
	count := 1
	for _, dim := range dims {
		count *= dim
	}
	result := array{dims, make([]float32, count)}
	for i := range result.values {
		result.values[i] = scale * float32((7*i+3)%17-8)
	}
	return result
}

// run returns the largest difference from the expected results, relative to the largest expected number, or to 1.
func (p program) run(client *pjrt.Client) (float64, error) {
	executable, err := client.Compile().WithStableHLO([]byte(p.text)).Done()
	if err != nil {
		return 0, refusal{err}
	}
	defer executable.Destroy()
	buffers := make([]*pjrt.Buffer, len(p.arguments))
	for i, argument := range p.arguments {
		if buffers[i], err = pjrt.ArrayToBuffer(client, argument.values, argument.dims...); err != nil {
			return 0, err
		}
	}
	arguments := append([]array(nil), p.arguments...)
	var expected []float64
	for range max(p.steps, 1) {
		execution := executable.Execute(buffers...)
		if p.donated {
			execution = execution.Donate(0)
		} else {
			execution = execution.DonateNone()
		}
		results, err := execution.Done()
		if err != nil {
			return 0, err
		}
		buffers[0] = results[0]
		expected = p.expected(arguments)
		arguments[0].values = make([]float32, len(expected))
		for i, number := range expected {
			arguments[0].values[i] = float32(number)
		}
	}
	actual, _, err := pjrt.BufferToArray[float32](buffers[0])
	if err != nil {
		return 0, err
	}
	return difference(actual, expected), nil
}

func difference(actual []float32, expected []float64) float64 {
	if len(actual) != len(expected) {
		return math.Inf(1)
	}
	scale, worst := 1.0, 0.0
	for _, number := range expected {
		scale = max(scale, math.Abs(number))
	}
	for i, number := range expected {
		// A comparison with NaN is false.
		if found := math.Abs(float64(actual[i])-number) / scale; !(found <= worst) {
			worst = found
		}
		if math.IsNaN(worst) {
			return math.Inf(1)
		}
	}
	return worst
}

func outcome(p program, client *pjrt.Client, tolerance float64) (string, map[string]any) {
	worst, err := p.run(client)
	if err != nil {
		message := strings.TrimSpace(err.Error())
		// UNIMPLEMENTED
		if _, atCompilation := err.(refusal); atCompilation && strings.Contains(message, "code=12") {
			return "refused", map[string]any{"message": message}
		}
		return "failed", map[string]any{"message": message}
	}
	if math.IsInf(worst, 1) {
		return "wrong", map[string]any{"message": "a result has another size, or elements that are not finite"}
	}
	if worst > tolerance {
		return "wrong", map[string]any{"error": worst}
	}
	return "right", map[string]any{"error": worst}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// option returns the value of a create option. Numbers in JSON are floating-point numbers in Go.
func option(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		number, _ := value.Float64()
		return float32(number)
	case []any:
		numbers := make([]int64, len(value))
		for i, number := range value {
			numbers[i], _ = number.(json.Number).Int64()
		}
		return numbers
	}
	return value
}

func main() {
	var asked request
	decoder := json.NewDecoder(strings.NewReader(os.Args[1]))
	decoder.UseNumber()
	if err := decoder.Decode(&asked); err != nil {
		panic(err)
	}
	options := pjrt.NamedValuesMap{}
	for name, value := range asked.Options {
		options[name] = option(value)
	}
	plugin := must(pjrt.GetPlugin(asked.Platform))
	client := must(plugin.NewClient(options))
	send("ready", "", map[string]any{"version": "go-xla 0.1.4"})
	all := programs()
	for _, name := range asked.Programs {
		p, exists := all[name]
		if !exists {
			send("absent", name, nil)
			continue
		}
		send("begins", name, nil)
		kind, facts := outcome(p, client, asked.Tolerance)
		send(kind, name, facts)
	}
	send("end", "", nil)
}
