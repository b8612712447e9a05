#include "expression.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "expression_frame.hpp"
#include "expression_functions.hpp"
#include "portable.hpp"

namespace ivme {

namespace {

struct Description {
    std::string_view name;
    const char* kinds;
};

constexpr Description DESCRIPTIONS[] = {
#define IVME_DESCRIPTION(name, kinds) {#name, kinds},
    IVME_EXPRESSION_OPERATIONS(IVME_DESCRIPTION)
#undef IVME_DESCRIPTION
};

}  // namespace

ExpressionProgram::ExpressionProgram(unsigned inputs, std::string kinds, unsigned outputs, unsigned foreign)
    : inputs_(inputs), outputs_(outputs), foreign_(foreign), kinds_(std::move(kinds)) {
    if (kinds_.find_first_not_of("wrd") != std::string::npos || kinds_.size() < inputs_ ||
        kinds_.substr(0, inputs_).find_first_not_of('w') != std::string::npos) {
        throw std::invalid_argument("an expression's registers are words, reals and decimals; its inputs are words");
    }
}

void ExpressionProgram::check_register(unsigned number, char kind, char wanted) const {
    bool there = kind == 'o' ? number < outputs_ : number < kinds_.size() && kinds_[number] == wanted;
    if (kind != '-' && !there) throw std::invalid_argument("an instruction names a register of another kind");
}

// What an instruction's own number is below.
size_t ExpressionProgram::limit(Operation operation) const {
    switch (operation) {
        case Operation::look_up:
            return tables.size();
        case Operation::in_words:
            return members.size();
        case Operation::foreign:
            return foreign_;
        case Operation::wide_of_code:
        case Operation::lt_text:
        case Operation::le_text:
        case Operation::gt_text:
        case Operation::ge_text:
            return dictionaries.size();
        case Operation::fits_bits:
            return 64;
        default:
            return MOST_DIGITS + 1;
    }
}

void ExpressionProgram::add(const Spec& spec) {
    const auto& [name, to, a, b, mask, k] = spec;
    auto found = std::find_if(std::begin(DESCRIPTIONS), std::end(DESCRIPTIONS),
                              [&name = name](const Description& each) { return each.name == name; });
    if (found == std::end(DESCRIPTIONS)) throw std::invalid_argument("unknown instruction " + name);
    const unsigned operands[] = {to, a, b};
    for (size_t i = 0; i < 3; ++i) check_register(operands[i], found->kinds[i], found->kinds[i]);
    check_register(mask, 'w', 'w');
    if (found->kinds[0] != 'o' && found->kinds[0] != '-' && to < inputs_) {
        throw std::invalid_argument("an instruction writes into a column");
    }
    auto operation = static_cast<Operation>(found - std::begin(DESCRIPTIONS));
    if (k >= limit(operation)) throw std::invalid_argument("the number of instruction " + name + " is out of range");
    instructions_.push_back({operation, to, a, b, mask, k});
}

void ExpressionProgram::set_constant(const Constant& constant) {
    if (constant.to < inputs_ || constant.to >= kinds_.size()) throw std::invalid_argument("no register of a constant");
    for (Constant& known : constants_) {
        if (known.to == constant.to) {
            known = constant;
            return;
        }
    }
    constants_.push_back(constant);
}

void ExpressionProgram::run(ExpressionRun& run, size_t rows) {
    if (run.columns.size() < inputs_ || run.outputs.size() < outputs_ || run.foreign.size() < foreign_) {
        throw std::invalid_argument("an expression lacks columns");
    }
    static thread_local std::vector<Wide> memory;
    static thread_local ExpressionFrame frame;
    size_t lanes = std::min(rows, EXPRESSION_CHUNK), wide = lanes, narrow = (lanes + 1) / 2;
    size_t total = 0;
    for (char kind : kinds_) total += kind == 'd' ? wide : narrow;
    if (memory.size() < total) memory.resize(total);
    frame.lanes.resize(kinds_.size());
    Wide* next = memory.data();
    for (size_t i = inputs_; i < kinds_.size(); ++i) {
        frame.lanes[i] = next;
        next += kinds_[i] == 'd' ? wide : narrow;
    }
    for (const Constant& constant : constants_) {
        char kind = kinds_[constant.to];
        if (kind == 'd') std::fill_n(frame.at<Wide>(constant.to), lanes, load_wide(constant.words));
        if (kind == 'w') std::fill_n(frame.at<int64_t>(constant.to), lanes, constant.words[0]);
        if (kind == 'r') std::fill_n(frame.at<double>(constant.to), lanes, std::bit_cast<double>(constant.words[0]));
    }
    run.missing.resize(foreign_);
    for (size_t start = 0; start < rows; start += EXPRESSION_CHUNK) {
        run_chunk(run, frame, start, std::min(EXPRESSION_CHUNK, rows - start));
    }
}

void ExpressionProgram::run_chunk(ExpressionRun& run, ExpressionFrame& frame, size_t start, size_t n) {
    frame.start = start;
    frame.n = n;
    std::memset(frame.doubtful, 0, n);
    for (size_t i = 0; i < inputs_; ++i) frame.lanes[i] = const_cast<int64_t*>(run.columns[i] + start);
    for (const Instruction& instruction : instructions_) execute(instruction, frame, run);
    const uint8_t* end = frame.doubtful + n;
    for (const uint8_t* at = frame.doubtful; (at = std::find(at, end, uint8_t{1})) != end; ++at) {
        run.doubtful.push_back(static_cast<int64_t>(start) + (at - frame.doubtful));
    }
}

IVME_CLONES void ExpressionProgram::execute(const Instruction& i, ExpressionFrame& f, ExpressionRun& run) {
    auto out = [&] { return run.outputs[i.to] + f.start; };
    auto word = [&] { return f.at<int64_t>(i.to); };
    auto equal = [](auto a, auto b) { return a == b; };
    auto different = [](auto a, auto b) { return a != b; };
    auto less = [](auto a, auto b) { return a < b; };
    auto at_most = [](auto a, auto b) { return a <= b; };
    auto greater = [](auto a, auto b) { return a > b; };
    auto at_least = [](auto a, auto b) { return a >= b; };
    auto null = [](auto value) { return static_cast<int64_t>(is_null(value)); };
    auto known = [](auto value) { return is_null(value) ? NULL_CODE : 0; };
    auto absolute = [](auto value) { return value < 0 ? -value : value; };
    auto negative = [](auto value) { return -value; };
    using Word = int64_t;
    switch (i.operation) {
        case Operation::add_int:
            return f.try_map<Word>(i, AddInt());
        case Operation::subtract_int:
            return f.try_map<Word>(i, SubtractInt());
        case Operation::multiply_int:
            return f.try_map<Word>(i, MultiplyInt());
        case Operation::modulo_int:
            return f.try_map<Word>(i, ModuloInt());
        case Operation::add_narrow:
            return f.map<Word, Word>(i, AddNarrow());
        case Operation::subtract_narrow:
            return f.map<Word, Word>(i, SubtractNarrow());
        case Operation::multiply_narrow:
            return f.map<Word, Word>(i, MultiplyNarrow());
        case Operation::multiply_words:
            return f.map<Word, Wide>(i, [](Word a, Word b) { return static_cast<Wide>(a) * b; });
        case Operation::add_wide:
            return f.try_map<Wide>(i, AddWide());
        case Operation::subtract_wide:
            return f.try_map<Wide>(i, SubtractWide());
        case Operation::multiply_wide:
            return f.try_map<Wide>(i, MultiplyWide());
        case Operation::modulo_wide:
            return f.try_map<Wide>(i, ModuloWide());
        case Operation::divide_wide:
            return f.try_map<Wide>(i, DivideWide());
        case Operation::add_real:
            return f.try_map<double>(i, AddReal());
        case Operation::subtract_real:
            return f.try_map<double>(i, SubtractReal());
        case Operation::multiply_real:
            return f.try_map<double>(i, MultiplyReal());
        case Operation::divide_real:
            return f.try_map<double>(i, DivideReal());
        case Operation::modulo_real:
            return f.try_map<double>(i, ModuloReal());
        case Operation::negate_word:
            return f.map_one<Word, Word>(i, negative);
        case Operation::negate_wide:
            return f.map_one<Wide, Wide>(i, negative);
        case Operation::negate_real:
            return f.map_one<double, double>(i, negative);
        case Operation::abs_word:
            return f.map_one<Word, Word>(i, absolute);
        case Operation::abs_wide:
            return f.map_one<Wide, Wide>(i, absolute);
        case Operation::abs_real:
            return f.map_one<double, double>(i, [](double value) { return std::fabs(value); });
        case Operation::eq_word:
            return f.map<Word, Word>(i, equal);
        case Operation::ne_word:
            return f.map<Word, Word>(i, different);
        case Operation::lt_word:
            return f.map<Word, Word>(i, less);
        case Operation::le_word:
            return f.map<Word, Word>(i, at_most);
        case Operation::gt_word:
            return f.map<Word, Word>(i, greater);
        case Operation::ge_word:
            return f.map<Word, Word>(i, at_least);
        case Operation::eq_wide:
            return f.map<Wide, Word>(i, equal);
        case Operation::ne_wide:
            return f.map<Wide, Word>(i, different);
        case Operation::lt_wide:
            return f.map<Wide, Word>(i, less);
        case Operation::le_wide:
            return f.map<Wide, Word>(i, at_most);
        case Operation::gt_wide:
            return f.map<Wide, Word>(i, greater);
        case Operation::ge_wide:
            return f.map<Wide, Word>(i, at_least);
        case Operation::eq_real:
            return f.map<double, Word>(i, equal);
        case Operation::ne_real:
            return f.map<double, Word>(i, different);
        case Operation::lt_real:
            return f.map<double, Word>(i, less);
        case Operation::le_real:
            return f.map<double, Word>(i, at_most);
        case Operation::gt_real:
            return f.map<double, Word>(i, greater);
        case Operation::ge_real:
            return f.map<double, Word>(i, at_least);
        case Operation::lt_text:
            return f.compare_text(i, dictionaries[i.k], [](int order) { return order < 0; });
        case Operation::le_text:
            return f.compare_text(i, dictionaries[i.k], [](int order) { return order <= 0; });
        case Operation::gt_text:
            return f.compare_text(i, dictionaries[i.k], [](int order) { return order > 0; });
        case Operation::ge_text:
            return f.compare_text(i, dictionaries[i.k], [](int order) { return order >= 0; });
        case Operation::is_null_word:
            return f.see<Word>(i, word(), null);
        case Operation::is_null_wide:
            return f.see<Wide>(i, word(), null);
        case Operation::is_null_real:
            return f.see<double>(i, word(), null);
        case Operation::in_words:
            return f.find(i, members[i.k]);
        case Operation::and_truth:
            return f.truth(i, 0);
        case Operation::or_truth:
            return f.truth(i, 1);
        case Operation::not_truth:
            return f.map_one<Word, Word>(i, [](Word truth) { return 1 - truth; });
        case Operation::mask_true:
            return f.mask(i, [](Word truth) { return truth == 1; });
        case Operation::mask_not_true:
            return f.mask(i, [](Word truth) { return truth != 1; });
        case Operation::mask_not_false:
            return f.mask(i, [](Word truth) { return truth != 0; });
        case Operation::select_word:
            return f.select<Word>(i);
        case Operation::select_wide:
            return f.select<Wide>(i);
        case Operation::select_real:
            return f.select<double>(i);
        case Operation::widen:
            return f.map_one<Word, Wide>(i, [](Word value) { return value; });
        case Operation::narrow:
            return f.try_map_one<Wide, Word>(i, [](Wide value, Word* to) {
                *to = static_cast<Word>(value);
                return *to == value && !is_null(*to);
            });
        case Operation::fits_wide:
            return f.check<Wide>(i, power_of_ten(i.k));
        case Operation::fits_word:
            return f.check<Word>(i, power_of_ten(i.k));
        case Operation::drop_half_up:
            return f.drop<Rounding::half_up>(i);
        case Operation::drop_floor:
            return f.drop<Rounding::floor>(i);
        case Operation::drop_ceil:
            return f.drop<Rounding::ceil>(i);
        case Operation::drop_truncate:
            return f.drop<Rounding::truncate>(i);
        case Operation::real_of_code:
            for (size_t row = 0, end = f.n; row < end; ++row)
                f.at<double>(i.to)[row] = real_of_code(f.at<Word>(i.a)[row]);
            return;
        case Operation::real_of_int:
            return f.map_one<Word, double>(i, [](Word value) { return static_cast<double>(value); });
        case Operation::real_of_wide:
            return f.try_map_one<Wide, double>(
                i, [&i](Wide value, double* to) { return real_of_decimal(value, i.k, to); });
        case Operation::wide_of_code:
            return f.large_decimals(i, dictionaries[i.k]);
        case Operation::floor_real:
            return f.try_map_one<double, Word>(i, [](double v, Word* to) { return int_of_real(std::floor(v), to); });
        case Operation::ceil_real:
            return f.try_map_one<double, Word>(i, [](double v, Word* to) { return int_of_real(std::ceil(v), to); });
        case Operation::truncate_real:
            return f.try_map_one<double, Word>(i, [](double v, Word* to) { return int_of_real(std::trunc(v), to); });
        case Operation::look_up:
            run.complete &= f.look_up(i, *tables[i.k], run.requests);
            return;
        case Operation::foreign:
            run.complete &= f.read(i, run.foreign[i.k], run.missing[i.k]);
            return;
        case Operation::doubt:
            for (size_t row = 0, end = f.n; row < end; ++row)
                f.doubtful[row] |= static_cast<uint8_t>(f.at<Word>(i.mask)[row]);
            return;
        case Operation::out_word:
            return f.see<Word>(i, out(), [](Word value) { return value; });
        case Operation::out_real:
            return f.see<double>(i, out(), code_of_real);
        case Operation::out_wide:
            return f.out_wide(i, out());
        case Operation::out_test:
            return f.see<Word>(i, out(), [](Word truth) { return Word{truth == 1}; });
        case Operation::known_word:
            return f.see<Word>(i, out(), known);
        case Operation::known_real:
            return f.see<double>(i, out(), known);
        case Operation::known_wide:
            return f.see<Wide>(i, out(), known);
        case Operation::low_wide:
            return f.see<Wide>(i, out(), [](Wide v) { return is_null(v) ? 0 : static_cast<Word>(v); });
        case Operation::high_wide:
            return f.see<Wide>(i, out(), [](Wide v) { return is_null(v) ? 0 : static_cast<Word>(v >> 64); });
        default:
            return execute_function(i, f);
    }
}

}  // namespace ivme
