// A small compiler without MLIR, so that the plugin builds and its tests run wherever a C++ compiler is. Replace this file.
//
// It reads the text of a module line by line, compiles add, subtract, multiply, constant and broadcast_in_dim of f32 and i32
// to code of its own, and refuses everything else with the operation, the line of the text and the user's location.
//
// A real compiler calls MLIR's parser in `compile`:
//
//   mlir::MLIRContext context(registry);  // with the dialects func, stablehlo and chlo
//   auto module = mlir::parseSourceString<mlir::ModuleOp>(program, &context);
//
// It can also take the bytes that the host sent, which `compile` in src/client.rs has in `request.program.code()`. These
// are a portable artifact of StableHLO: mlir::stablehlo::deserializePortableArtifact(program, &context).

#include "compiler.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Error : std::runtime_error {
  uint32_t code;
  Error(uint32_t code, const std::string& message) : std::runtime_error(message), code(code) {}
};

// The code is a sequence of 32-bit words: MAGIC, the numbers of values, arguments and results, the type and the number of
// elements of each value, the results, and the instructions up to the end. The first values are the arguments.
using Words = std::vector<uint32_t>;
constexpr uint32_t MAGIC = 0x314a504d;
constexpr uint64_t MAX_ELEMENTS = uint64_t{1} << 28;

enum Type : uint32_t { F32, I32 };
// The words of an instruction: the opcode, the value that it writes, and
enum Opcode : uint32_t {
  CONSTANT,      // the number of elements in the code, which is 1 or that of the value, and the elements
  BROADCAST,     // an operand, the rank, and for each dimension the size and the step in the operand
  ADD,           // two operands
  SUBTRACT,      // two operands
  MULTIPLY,      // two operands
  MULTIPLY_ADD,  // three operands of f32
};

// ---------------------------------------------------------------------------------------------------------- the compiler

// A position in a line of the module's text.
class Cursor {
 public:
  explicit Cursor(const std::string& text) : text_(text) {}

  bool starts_with(const std::string& token) const { return text_.compare(position_, token.size(), token) == 0; }

  bool skip(const std::string& token) {
    if (!starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  void expect(const std::string& token) {
    if (!skip(token)) throw Error(COMPILER_INVALID_ARGUMENT, "expected '" + token + "', found '" + rest() + "'");
  }

  // Returns the text before the next of some characters.
  std::string until(const char* ends) {
    size_t end = std::min(text_.find_first_of(ends, position_), text_.size());
    std::string found = text_.substr(position_, end - position_);
    position_ = end;
    return found;
  }

  // Skips a group in brackets, which may contain groups and strings, and returns its contents.
  std::string group(char open, char close) {
    expect(std::string(1, open));
    size_t begin = position_;
    bool in_string = false;
    for (int depth = 1; position_ < text_.size(); ++position_) {
      char c = text_[position_];
      if (c == '\\' && in_string) ++position_;
      else if (c == '"') in_string = !in_string;
      else if (!in_string && c == open) ++depth;
      else if (!in_string && c == close && --depth == 0) return text_.substr(begin, position_++ - begin);
    }
    throw Error(COMPILER_INVALID_ARGUMENT, std::string("expected '") + close + "' at the end of the line");
  }

  std::string rest() const { return position_ < text_.size() ? text_.substr(position_) : ""; }

 private:
  const std::string& text_;
  size_t position_ = 0;
};

struct Array {
  Type type;
  std::vector<uint64_t> dims;
  uint64_t count;
};

uint64_t number(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    throw Error(COMPILER_INVALID_ARGUMENT, "expected a number, found '" + text + "'");
  return std::stoull(text);
}

// Reads a type such as tensor<2x3xf32>.
Array read_type(Cursor& line) {
  if (!line.starts_with("tensor<")) throw Error(COMPILER_UNIMPLEMENTED, "the type " + line.until(" ,)") + " is not supported");
  line.expect("tensor");
  std::string text = line.group('<', '>');
  Array array{F32, {}, 1};
  size_t begin = 0;
  for (size_t x; (x = text.find('x', begin)) != std::string::npos; begin = x + 1) {
    std::string dim = text.substr(begin, x - begin);
    if (dim.empty() || dim.find_first_not_of("0123456789") != std::string::npos) break;
    array.dims.push_back(number(dim));
    if (array.dims.back() != 0 && array.count > MAX_ELEMENTS / array.dims.back())
      throw Error(COMPILER_RESOURCE_EXHAUSTED, "an array of the type tensor<" + text + "> is too large");
    array.count *= array.dims.back();
  }
  std::string element = text.substr(begin);
  if (element != "f32" && element != "i32")
    throw Error(COMPILER_UNIMPLEMENTED, "the type tensor<" + text + "> is not supported; the compiler has f32 and i32");
  array.type = element == "f32" ? F32 : I32;
  return array;
}

uint32_t read_element(const std::string& text, Type type) {
  char* end = nullptr;
  bool is_bits = text.compare(0, 2, "0x") == 0;
  uint32_t word = 0;
  if (type == F32 && !is_bits) {
    float value = std::strtof(text.c_str(), &end);
    std::memcpy(&word, &value, sizeof word);
  } else {
    word = static_cast<uint32_t>(std::strtoll(text.c_str(), &end, is_bits ? 16 : 10));
  }
  if (text.empty() || *end != 0) throw Error(COMPILER_UNIMPLEMENTED, "the constant '" + text.substr(0, 40) + "' is not supported");
  return word;
}

// Reads the elements of an attribute such as value = dense<[[1, 2]]> : tensor<1x2xi32>.
Words read_elements(const std::string& attributes, const Array& array) {
  size_t start = attributes.find("dense<");
  if (start == std::string::npos) throw Error(COMPILER_UNIMPLEMENTED, "the constant " + attributes + " is not supported");
  std::string text = attributes.substr(start + 5);
  std::string list = Cursor(text).group('<', '>');
  Words elements;
  for (size_t begin = 0; (begin = list.find_first_not_of("[], ", begin)) != std::string::npos;) {
    size_t end = std::min(list.find_first_of("[], ", begin), list.size());
    elements.push_back(read_element(list.substr(begin, end - begin), array.type));
    begin = end;
  }
  if (elements.size() != array.count && elements.size() != 1)
    throw Error(COMPILER_INVALID_ARGUMENT, "a constant has " + std::to_string(elements.size()) + " elements, expected " +
                                               std::to_string(array.count));
  return elements;
}

// Reads an attribute such as broadcast_dimensions = array<i64: 0, 2>.
std::vector<uint64_t> read_dimensions(const std::string& attributes) {
  std::vector<uint64_t> dimensions;
  size_t colon = attributes.find("array<i64:");
  if (colon == std::string::npos) return dimensions;
  std::string text = attributes.substr(colon + 10);
  Cursor list(text);
  do {
    list.skip(" ");
    dimensions.push_back(number(list.until(",>")));
  } while (list.skip(","));
  return dimensions;
}

// Returns the first position in a file that a location contains, such as `, at "model.py":3:7`, or nothing.
std::string file_position(const std::string& location) {
  for (size_t open = location.find('"'); open != std::string::npos; open = location.find('"', open)) {
    size_t close = location.find('"', open + 1);
    if (close == std::string::npos) break;
    size_t end = std::min(location.find_first_not_of(":0123456789", close + 1), location.size());
    if (location[close + 1] == ':' && end > close + 2) return ", at " + location.substr(open, end - open);
    open = close + 1;
  }
  return "";
}

class Compiler {
 public:
  Compiler(const std::string& text, const compiler_options& options) : options_(options) {
    for (size_t begin = 0; begin < text.size();) {
      size_t end = std::min(text.find('\n', begin), text.size());
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  Words compile() {
    size_t number_of_functions = 0;
    for (size_t line = 0; line < lines_.size(); ++line) {
      std::string text = lines_[line].substr(std::min(lines_[line].find_first_not_of(' '), lines_[line].size()));
      try {
        if (text.compare(0, 12, "\"func.func\"(") == 0) {
          if (++number_of_functions > 1) throw Error(COMPILER_UNIMPLEMENTED, "a second function is not supported");
        } else if (text.compare(0, 3, "^bb") == 0) {
          read_arguments(text);
        } else if (number_of_functions == 1 && (text[0] == '%' || text[0] == '"')) {
          read_operation(text);
        }
      } catch (const Error& error) {
        throw Error(error.code, std::string(error.what()) + "; line " + std::to_string(line + 1) + " of the module" +
                                    file_position(location_of(line)));
      }
    }
    if (!has_return_) throw Error(COMPILER_INVALID_ARGUMENT, "the module has no function with a return");
    return assemble();
  }

 private:
  uint32_t define(const std::string& name, const Array& array) {
    numbers_[name] = static_cast<uint32_t>(values_.size());
    values_.push_back(array);
    return numbers_[name];
  }

  uint32_t use(const std::string& name) const {
    auto found = numbers_.find(name);
    if (found == numbers_.end()) throw Error(COMPILER_INVALID_ARGUMENT, "the value " + name + " is not defined");
    return found->second;
  }

  // Reads a line such as ^bb0(%arg0: tensor<f32> loc("x"), %arg1: tensor<2xi32> loc("y")):
  void read_arguments(const std::string& text) {
    Cursor line(text);
    line.until("(");
    line.expect("(");
    do {
      line.skip(" ");
      std::string name = line.until(":");
      line.expect(": ");
      try {
        define(name, read_type(line));
      } catch (const Error& error) {
        throw Error(error.code, "argument " + std::to_string(values_.size()) + ": " + error.what());
      }
      if (line.skip(" loc")) line.group('(', ')');
    } while (line.skip(","));
    line.expect("):");
    num_arguments_ = values_.size();
  }

  // Reads a line such as %2 = "stablehlo.add"(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("z")
  void read_operation(const std::string& text) {
    Cursor line(text);
    std::string result;
    if (line.starts_with("%")) {
      result = line.until(" ");
      line.expect(" = ");
    }
    line.expect("\"");
    std::string name = line.until("\"");
    line.expect("\"");
    if (!is_supported(name)) throw Error(COMPILER_UNIMPLEMENTED, "the compiler does not support " + name);
    std::string list = line.group('(', ')');
    std::vector<uint32_t> operands;
    for (Cursor names(list); !names.rest().empty(); names.skip(", ")) operands.push_back(use(names.until(",")));
    std::string attributes;
    if (line.skip(" <")) {
      attributes = line.group('{', '}');
      line.expect(">");
    }
    if (line.skip(" ")) {
      if (line.starts_with("{")) line.group('{', '}'), line.expect(" ");
    }
    line.expect(": ");
    line.group('(', ')');
    line.expect(" -> ");
    if (name == "func.return") {
      results_ = operands;
      has_return_ = true;
      return;
    }
    Array array = read_type(line);
    emit(name, operands, attributes, array, define(result, array));
  }

  static bool is_supported(const std::string& name) {
    for (const char* supported : {"stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.constant",
                                  "stablehlo.broadcast_in_dim", "func.return"})
      if (name == supported) return true;
    return false;
  }

  void emit(const std::string& name, const std::vector<uint32_t>& operands, const std::string& attributes,
            const Array& array, uint32_t result) {
    size_t expected = name == "stablehlo.constant" ? 0 : name == "stablehlo.broadcast_in_dim" ? 1 : 2;
    if (operands.size() != expected)
      throw Error(COMPILER_INVALID_ARGUMENT, name + " has " + std::to_string(operands.size()) + " operands");
    if (expected == 0) {
      Words elements = read_elements(attributes, array);
      append({CONSTANT, result, static_cast<uint32_t>(elements.size())});
      code_.insert(code_.end(), elements.begin(), elements.end());
    } else if (expected == 1) {
      emit_broadcast(operands[0], read_dimensions(attributes), array, result);
    } else if (name == "stablehlo.add" && options_.fuse_multiply_add && array.type == F32 && products_.count(operands[0])) {
      auto factors = products_[operands[0]];
      append({MULTIPLY_ADD, result, factors.first, factors.second, operands[1]});
    } else if (name == "stablehlo.add" && options_.fuse_multiply_add && array.type == F32 && products_.count(operands[1])) {
      auto factors = products_[operands[1]];
      append({MULTIPLY_ADD, result, factors.first, factors.second, operands[0]});
    } else {
      Opcode opcode = name == "stablehlo.add" ? ADD : name == "stablehlo.subtract" ? SUBTRACT : MULTIPLY;
      if (opcode == MULTIPLY) products_[result] = {operands[0], operands[1]};
      append({opcode, result, operands[0], operands[1]});
    }
  }

  void emit_broadcast(uint32_t operand, const std::vector<uint64_t>& dimensions, const Array& array, uint32_t result) {
    const std::vector<uint64_t>& from = values_[operand].dims;
    if (dimensions.size() != from.size())
      throw Error(COMPILER_INVALID_ARGUMENT, "broadcast_dimensions does not have the rank of the operand");
    std::vector<uint32_t> steps(array.dims.size(), 0);
    uint32_t step = 1;
    for (size_t d = from.size(); d-- > 0; step *= static_cast<uint32_t>(from[d])) {
      if (dimensions[d] >= steps.size()) throw Error(COMPILER_INVALID_ARGUMENT, "a broadcast dimension is out of range");
      if (from[d] != 1) steps[dimensions[d]] = step;
    }
    append({BROADCAST, result, operand, static_cast<uint32_t>(steps.size())});
    for (size_t d = 0; d < steps.size(); ++d) append({static_cast<uint32_t>(array.dims[d]), steps[d]});
  }

  void append(std::initializer_list<uint32_t> words) { code_.insert(code_.end(), words); }

  Words assemble() const {
    auto size = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
    Words words = {MAGIC, size(values_), static_cast<uint32_t>(num_arguments_), size(results_)};
    for (const Array& value : values_) {
      words.push_back(value.type);
      words.push_back(static_cast<uint32_t>(value.count));
    }
    words.insert(words.end(), results_.begin(), results_.end());
    words.insert(words.end(), code_.begin(), code_.end());
    return words;
  }

  // Returns the location of an operation, which is at its end: after its regions if it has any.
  std::string location_of(size_t line) const {
    size_t indent = lines_[line].find_first_not_of(' ');
    bool has_regions = lines_[line].size() > 2 && lines_[line].compare(lines_[line].size() - 2, 2, "({") == 0;
    while (has_regions && line + 1 < lines_.size()) {
      ++line;
      if (lines_[line].find_first_not_of(' ') == indent && lines_[line].compare(indent, 2, "})") == 0) break;
    }
    size_t start = lines_[line].rfind(" loc(");
    return start == std::string::npos ? "" : lines_[line].substr(start);
  }

  const compiler_options& options_;
  std::vector<std::string> lines_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<Array> values_;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> products_;
  std::vector<uint32_t> results_;
  size_t num_arguments_ = 0;
  bool has_return_ = false;
  Words code_;
};

// ----------------------------------------------------------------------------------------------------------- the runtime

class Machine {
 public:
  explicit Machine(compiler_bytes code) : code_(code) {
    if (code.size < 16 || code.size % 4 != 0 || next() != MAGIC) fail("this is not code of this compiler");
    uint32_t num_values = next();
    num_arguments_ = next();
    num_results_ = next();
    if (num_values > code.size / 8 || num_arguments_ > num_values || num_results_ > code.size / 4)
      fail("the numbers of values are wrong");
    for (uint32_t value = 0; value < num_values; ++value) {
      types_.push_back(next() == F32 ? F32 : I32);
      counts_.push_back(next());
      if (counts_.back() > MAX_ELEMENTS) fail("a value is too large");
    }
    values_.resize(num_values);
    for (uint32_t result = 0; result < num_results_; ++result) results_.push_back(index());
  }

  void run(const compiler_bytes* arguments, size_t num_arguments, const compiler_buffer* results, size_t num_results) {
    if (num_arguments != num_arguments_ || num_results != num_results_)
      throw Error(COMPILER_INVALID_ARGUMENT, "the program has " + std::to_string(num_arguments_) + " arguments and " +
                                                 std::to_string(num_results_) + " results");
    for (size_t i = 0; i < num_arguments; ++i) {
      check_size(arguments[i].size, i);
      values_[i].resize(counts_[i]);
      if (arguments[i].size != 0) std::memcpy(values_[i].data(), arguments[i].data, arguments[i].size);
    }
    while (position_ < code_.size) step();
    for (size_t i = 0; i < num_results; ++i) {
      check_size(results[i].size, results_[i]);
      const Words& value = read(results_[i]);
      if (results[i].size != 0) std::memcpy(results[i].data, value.data(), results[i].size);
    }
  }

 private:
  [[noreturn]] static void fail(const char* message) { throw Error(COMPILER_DATA_LOSS, message); }

  uint32_t next() {
    if (code_.size - position_ < 4) fail("the code ends within an instruction");
    uint32_t word;
    std::memcpy(&word, code_.data + position_, sizeof word);
    position_ += sizeof word;
    return word;
  }

  uint32_t index() {
    uint32_t value = next();
    if (value >= counts_.size()) fail("an instruction uses a value that does not exist");
    return value;
  }

  void check_size(size_t size, size_t value) const {
    if (size != uint64_t{counts_[value]} * 4)
      throw Error(COMPILER_INVALID_ARGUMENT, "an array has " + std::to_string(size) + " bytes, expected " +
                                                 std::to_string(uint64_t{counts_[value]} * 4));
  }

  const Words& read(uint32_t value) const {
    if (values_[value].size() != counts_[value]) fail("an instruction reads a value that is not written yet");
    return values_[value];
  }

  void step() {
    uint32_t opcode = next();
    uint32_t result = index();
    Words written(counts_[result]);
    if (opcode == CONSTANT) {
      uint32_t count = next();
      if (count != 1 && count != counts_[result]) fail("a constant has the wrong size");
      Words elements(0);
      for (uint32_t i = 0; i < count; ++i) elements.push_back(next());
      for (size_t i = 0; i < written.size(); ++i) written[i] = elements[count == 1 ? 0 : i];
    } else if (opcode == BROADCAST) {
      broadcast(written);
    } else if (opcode <= MULTIPLY_ADD) {
      const Words& x = operand(result);
      const Words& y = operand(result);
      const Words* z = opcode == MULTIPLY_ADD ? &operand(result) : nullptr;
      if (z != nullptr && types_[result] != F32) fail("an instruction has the wrong type");
      for (size_t i = 0; i < written.size(); ++i)
        written[i] = types_[result] == F32 ? floats(opcode, x[i], y[i], z ? (*z)[i] : 0) : integers(opcode, x[i], y[i]);
    } else {
      fail("the code has an unknown instruction");
    }
    values_[result] = std::move(written);
  }

  // Reads an operand that has the size of the result.
  const Words& operand(uint32_t result) {
    const Words& value = read(index());
    if (value.size() != counts_[result]) fail("an operand has the wrong size");
    return value;
  }

  static uint32_t floats(uint32_t opcode, uint32_t x_bits, uint32_t y_bits, uint32_t z_bits) {
    float x, y, z, result;
    std::memcpy(&x, &x_bits, sizeof x);
    std::memcpy(&y, &y_bits, sizeof y);
    std::memcpy(&z, &z_bits, sizeof z);
    switch (opcode) {
      case ADD: result = x + y; break;
      case SUBTRACT: result = x - y; break;
      case MULTIPLY: result = x * y; break;
      default: result = std::fma(x, y, z);
    }
    uint32_t bits;
    std::memcpy(&bits, &result, sizeof bits);
    return bits;
  }

  // Unsigned arithmetic wraps around, as StableHLO requires of signed integers.
  static uint32_t integers(uint32_t opcode, uint32_t x, uint32_t y) {
    return opcode == ADD ? x + y : opcode == SUBTRACT ? x - y : x * y;
  }

  void broadcast(Words& written) {
    const Words& from = read(index());
    uint32_t rank = next();
    if (rank > (code_.size - position_) / 8) fail("the code ends within an instruction");
    std::vector<uint64_t> dims(rank);
    std::vector<uint64_t> steps;
    uint64_t count = 1, last = 0;
    for (uint64_t& dim : dims) {
      dim = next();
      steps.push_back(next());
      count *= dim;
      if (dim > MAX_ELEMENTS || count > MAX_ELEMENTS) fail("a broadcast is too large");
      last += dim == 0 ? 0 : (dim - 1) * steps.back();
    }
    if (count != written.size() || (count > 0 && last >= from.size())) fail("a broadcast has the wrong size");
    for (size_t i = 0; i < written.size(); ++i) {
      uint64_t rest = i, offset = 0;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) offset += rest % dims[d] * steps[d];
      written[i] = from[offset];
    }
  }

  compiler_bytes code_;
  size_t position_ = 0;
  uint32_t num_arguments_ = 0, num_results_ = 0;
  std::vector<Type> types_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> results_;
  std::vector<Words> values_;
};

// --------------------------------------------------------------------------------------------------------- the interface

compiler_output output(uint32_t error, const void* data, size_t size) noexcept {
  auto copy = size == 0 ? nullptr : static_cast<uint8_t*>(std::malloc(size));
  if (size != 0 && copy == nullptr) return {COMPILER_RESOURCE_EXHAUSTED, nullptr, 0};
  if (size != 0) std::memcpy(copy, data, size);
  return {error, copy, size};
}

// Calls a function, and converts its exceptions: none may leave this library.
template <typename Function>
compiler_output guarded(Function function) noexcept {
  try {
    return function();
  } catch (const Error& error) {
    return output(error.code, error.what(), std::strlen(error.what()));
  } catch (const std::bad_alloc&) {
    return output(COMPILER_RESOURCE_EXHAUSTED, "out of memory", 13);
  } catch (const std::exception& error) {
    return output(COMPILER_INTERNAL, error.what(), std::strlen(error.what()));
  } catch (...) {
    return output(COMPILER_INTERNAL, "unknown exception", 17);
  }
}

std::string to_string(compiler_bytes bytes) {
  return bytes.size == 0 ? "" : std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
}

}  // namespace

compiler_output compiler_compile(compiler_bytes program, compiler_bytes format, const compiler_options* options) noexcept {
  return guarded([&] {
    if (to_string(format) != "mlir")
      throw Error(COMPILER_UNIMPLEMENTED, "the format '" + to_string(format) + "' is not supported; expected 'mlir'");
    Words code = Compiler(to_string(program), *options).compile();
    return output(COMPILER_OK, code.data(), code.size() * sizeof(uint32_t));
  });
}

compiler_output compiler_run(compiler_bytes code, const compiler_bytes* arguments, size_t num_arguments,
                             const compiler_buffer* results, size_t num_results) noexcept {
  return guarded([&] {
    Machine(code).run(arguments, num_arguments, results, num_results);
    return output(COMPILER_OK, nullptr, 0);
  });
}

void compiler_free(compiler_output output) noexcept { std::free(output.data); }
