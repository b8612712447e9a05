// Expressions as flat programs of typed instructions, run over columns of codes, a chunk of rows at a time.
//
// A register holds one value for each row of the chunk, in one of three kinds. NULL is a value of each kind: NULL_CODE,
// any NaN, and the least of 128 bits. An instruction runs over all rows of the chunk, whatever guards it; its mask says
// for which rows its failure counts. A row that fails, or whose value takes more than the kernel has (a sum beyond 38
// digits, say), is doubtful: the caller computes it, or says why it has no value. Nothing is ever wrong silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "code_table.hpp"
#include "dictionary.hpp"
#include "wide.hpp"

namespace ivme {

// Names and the kinds of their registers: target, first and second operand; w word, r real, d decimal of 128 bits,
// o output, - none.
// clang-format off
#define IVME_EXPRESSION_OPERATIONS(X) \
    X(add_int, "www") X(subtract_int, "www") X(multiply_int, "www") X(modulo_int, "www") \
    X(add_narrow, "www") X(subtract_narrow, "www") X(multiply_narrow, "www") X(multiply_words, "dww") \
    X(add_wide, "ddd") X(subtract_wide, "ddd") X(multiply_wide, "ddd") X(modulo_wide, "ddd") \
    X(divide_wide, "ddd") X(add_real, "rrr") X(subtract_real, "rrr") X(multiply_real, "rrr") \
    X(divide_real, "rrr") X(modulo_real, "rrr") X(negate_word, "ww-") X(negate_wide, "dd-") \
    X(negate_real, "rr-") X(abs_word, "ww-") X(abs_wide, "dd-") X(abs_real, "rr-") X(eq_word, "www") \
    X(ne_word, "www") X(lt_word, "www") X(le_word, "www") X(gt_word, "www") X(ge_word, "www") \
    X(eq_wide, "wdd") X(ne_wide, "wdd") X(lt_wide, "wdd") X(le_wide, "wdd") X(gt_wide, "wdd") \
    X(ge_wide, "wdd") X(eq_real, "wrr") X(ne_real, "wrr") X(lt_real, "wrr") X(le_real, "wrr") \
    X(gt_real, "wrr") X(ge_real, "wrr") X(lt_text, "www") X(le_text, "www") X(gt_text, "www") \
    X(ge_text, "www") X(is_null_word, "ww-") X(is_null_wide, "wd-") X(is_null_real, "wr-") \
    X(in_words, "ww-") X(and_truth, "www") X(or_truth, "www") X(not_truth, "ww-") X(mask_true, "ww-") \
    X(mask_not_true, "ww-") X(mask_not_false, "ww-") X(select_word, "www") X(select_wide, "ddd") \
    X(select_real, "rrr") X(widen, "dw-") X(narrow, "wd-") X(fits_wide, "-d-") X(fits_word, "-w-") \
    X(drop_half_up, "dd-") X(drop_floor, "dd-") X(drop_ceil, "dd-") X(drop_truncate, "dd-") \
    X(real_of_code, "rw-") X(real_of_int, "rw-") X(real_of_wide, "rd-") X(wide_of_code, "dw-") \
    X(floor_real, "wr-") X(ceil_real, "wr-") X(truncate_real, "wr-") X(days_of_micros, "ww-") \
    X(micros_of_days, "ww-") X(year, "ww-") X(month, "ww-") X(day, "ww-") X(quarter, "ww-") \
    X(weekofyear, "ww-") X(yearofweek, "ww-") X(dayofweek, "ww-") X(weekday, "ww-") X(dayofweek_iso, "ww-") \
    X(dayofyear, "ww-") X(last_day, "ww-") X(month_start, "ww-") X(week_start, "ww-") X(add_days, "www") \
    X(add_months, "www") X(add_micros, "www") X(add_months_to_micros, "www") X(months_apart, "www") \
    X(floor_to, "www") X(floor_quotient, "www") X(floor_modulo, "www") X(fits_bits, "ww-") \
    X(div_int, "www") X(pmod_int, "www") X(pmod_real, "rrr") X(bit_and, "www") X(bit_or, "www") \
    X(bit_xor, "www") X(bit_not, "ww-") X(bit_count, "ww-") X(shiftleft, "www") X(shiftright, "www") \
    X(shiftrightunsigned, "www") X(cbrt_real, "rr-") X(expm1_real, "rr-") X(sin_real, "rr-") X(cos_real, "rr-") X(tan_real, "rr-") X(asin_real, "rr-") X(acos_real, "rr-") X(atan_real, "rr-") \
    X(sinh_real, "rr-") X(cosh_real, "rr-") X(tanh_real, "rr-") X(log1p_real, "rr-") X(degrees_real, "rr-") X(radians_real, "rr-") X(rint_real, "rr-") X(atan2_real, "rrr") \
    X(sqrt_real, "rr-") X(exp_real, "rr-") X(ln_real, "rr-") X(log10_real, "rr-") \
    X(log2_real, "rr-") X(sign_real, "rr-") X(power_real, "rrr") X(look_up, "ww-") \
    X(foreign, "w--") X(doubt, "---") X(out_word, "ow-") X(out_real, "or-") X(out_wide, "od-") \
    X(out_test, "ow-") X(known_word, "ow-") X(known_real, "or-") X(known_wide, "od-") X(low_wide, "od-") \
    X(high_wide, "od-")
// clang-format on

enum class Operation : uint8_t {
#define IVME_NAME(name, kinds) name,
    IVME_EXPRESSION_OPERATIONS(IVME_NAME)
#undef IVME_NAME
};

struct Instruction {
    Operation operation;
    unsigned to, a, b;
    unsigned mask;  // a register of 0 and 1
    unsigned k;     // the number of a table, set, dictionary or foreign column, or a number of digits, bits or months
};

// A column that others compute, as far as they have: CodeTable's states by row.
struct ForeignColumn {
    const int64_t* values;
    const uint8_t* states;
};

struct Constant {
    unsigned to;
    int64_t words[2];  // low word first; of reals, the bits
};

// The members of an IN list, sorted.
struct InList {
    std::vector<int64_t> codes;
    bool has_null;
};

inline constexpr size_t EXPRESSION_CHUNK = 1024;

struct ExpressionRun {
    std::vector<const int64_t*> columns;
    std::vector<ForeignColumn> foreign;
    std::vector<int64_t*> outputs;

    std::vector<int64_t> doubtful;              // rows
    std::vector<std::vector<int64_t>> missing;  // by foreign column, rows
    bool complete = true;                       // nothing was missing
    bool requests = true;                       // tables note what they lack
};

struct ExpressionFrame;

class ExpressionProgram {
public:
    using Spec = std::tuple<std::string, unsigned, unsigned, unsigned, unsigned, unsigned>;

    // The kinds of the registers, one letter each; the first `inputs` are the columns, which are words.
    ExpressionProgram(unsigned inputs, std::string kinds, unsigned outputs, unsigned foreign);

    void add(const Spec& spec);
    void set_constant(const Constant& constant);

    void run(ExpressionRun& run, size_t rows);

    unsigned inputs() const { return inputs_; }
    unsigned outputs() const { return outputs_; }
    unsigned foreign() const { return foreign_; }

    std::vector<CodeTable*> tables;
    std::vector<InList> members;
    std::vector<const Dictionary*> dictionaries;

private:
    size_t limit(Operation operation) const;
    void check_register(unsigned number, char kind, char wanted) const;
    void run_chunk(ExpressionRun& run, ExpressionFrame& frame, size_t start, size_t n);
    void execute(const Instruction& instruction, ExpressionFrame& frame, ExpressionRun& run);

    unsigned inputs_, outputs_, foreign_;
    std::string kinds_;
    std::vector<Instruction> instructions_;
    std::vector<Constant> constants_;
};

}  // namespace ivme
