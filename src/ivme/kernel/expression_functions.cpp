#include "expression_functions.hpp"

#include <bit>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "expression_dates.hpp"

namespace ivme {

void execute_function(const Instruction& i, ExpressionFrame& f) {
    using Word = int64_t;
    switch (i.operation) {
        case Operation::days_of_micros:
            return f.map_one<Word, Word>(i, [](Word micros) { return floored_quotient(micros, DAY_MICROSECONDS); });
        case Operation::micros_of_days:
            return f.map_one<Word, Word>(i, [](Word days) { return days * DAY_MICROSECONDS; });
        case Operation::year:
            return f.part_of_date(i, [](Civil date) { return date.year; });
        case Operation::month:
            return f.part_of_date(i, [](Civil date) { return date.month; });
        case Operation::day:
            return f.part_of_date(i, [](Civil date) { return date.day; });
        case Operation::quarter:
            return f.part_of_date(i, [](Civil date) { return (date.month + 2) / 3; });
        case Operation::weekofyear:
            return f.map_one<Word, Word>(i, [](Word days) { return iso_week_of_days(days).week; });
        case Operation::yearofweek:
            return f.map_one<Word, Word>(i, [](Word days) { return iso_week_of_days(days).year; });
        case Operation::dayofweek:
            return f.map_one<Word, Word>(i, [](Word days) { return (weekday_of_days(days) + 1) % 7 + 1; });
        case Operation::weekday:
            return f.map_one<Word, Word>(i, weekday_of_days);
        case Operation::dayofweek_iso:
            return f.map_one<Word, Word>(i, [](Word days) { return weekday_of_days(days) + 1; });
        case Operation::dayofyear:
            return f.map_one<Word, Word>(i, day_of_year);
        case Operation::last_day:
            return f.map_one<Word, Word>(i, last_day_of_month);
        case Operation::month_start:
            return f.map_one<Word, Word>(i, [&i](Word days) { return start_of_months(days, i.k); });
        case Operation::week_start:
            return f.map_one<Word, Word>(i, [](Word days) { return days - weekday_of_days(days); });
        case Operation::add_days:
            return f.try_map<Word>(i, AddDays());
        case Operation::add_months:
            return f.try_map<Word>(i, AddMonths());
        case Operation::add_micros:
            return f.try_map<Word>(i, AddMicros());
        case Operation::add_months_to_micros:
            return f.try_map<Word>(i, AddMonthsToMicros());
        case Operation::months_apart:
            return f.try_map<Word>(i, MonthsApart());
        case Operation::floor_to:
            return f.try_map<Word>(i, FloorTo());
        case Operation::floor_quotient:
            return f.map<Word, Word>(i, floored_quotient);
        case Operation::floor_modulo:
            return f.try_map<Word>(i, FloorModulo());
        case Operation::fits_bits:
            return f.try_map_one<Word, Word>(i, [&i](Word value, Word* to) {
                *to = value;
                return value >= -(Word{1} << (i.k - 1)) && value < Word{1} << (i.k - 1);
            });
        case Operation::div_int:
            return f.try_map<Word>(i, DivideInt());
        case Operation::pmod_int:
            return f.try_map<Word>(i, PositiveModuloInt());
        case Operation::pmod_real:
            return f.try_map<double>(i, PositiveModuloReal());
        case Operation::bit_and:
            return f.try_map<Word>(i, bits([](uint64_t a, uint64_t b) { return a & b; }));
        case Operation::bit_or:
            return f.try_map<Word>(i, bits([](uint64_t a, uint64_t b) { return a | b; }));
        case Operation::bit_xor:
            return f.try_map<Word>(i, bits([](uint64_t a, uint64_t b) { return a ^ b; }));
        case Operation::bit_not:
            return f.try_map_one<Word, Word>(i, [](Word value, Word* to) { return !is_null(*to = ~value); });
        case Operation::bit_count:
            return f.map_one<Word, Word>(i, [](Word value) { return std::popcount(static_cast<uint64_t>(value)); });
        case Operation::shiftleft:
            return f.try_map<Word>(i, bits([](uint64_t a, uint64_t b) { return a << (b & 63); }));
        case Operation::shiftright:
            return f.map<Word, Word>(i, [](Word a, Word b) { return a >> (b & 63); });
        case Operation::shiftrightunsigned:
            return f.try_map<Word>(i, bits([](uint64_t a, uint64_t b) { return a >> (b & 63); }));
        case Operation::sqrt_real:
            return f.real_function(i, [](double v) { return std::sqrt(v); });
        case Operation::cbrt_real:
            return f.real_function(i, [](double v) { return std::cbrt(v); });
        case Operation::expm1_real:
            return f.real_function(i, [](double v) { return std::expm1(v); });
        case Operation::sin_real:
            return f.real_function(i, [](double v) { return std::sin(v); });
        case Operation::cos_real:
            return f.real_function(i, [](double v) { return std::cos(v); });
        case Operation::tan_real:
            return f.real_function(i, [](double v) { return std::tan(v); });
        case Operation::asin_real:
            return f.real_function(i, [](double v) { return std::asin(v); });
        case Operation::acos_real:
            return f.real_function(i, [](double v) { return std::acos(v); });
        case Operation::atan_real:
            return f.real_function(i, [](double v) { return std::atan(v); });
        case Operation::sinh_real:
            return f.real_function(i, [](double v) { return std::sinh(v); });
        case Operation::cosh_real:
            return f.real_function(i, [](double v) { return std::cosh(v); });
        case Operation::tanh_real:
            return f.real_function(i, [](double v) { return std::tanh(v); });
        case Operation::degrees_real:
            return f.real_function(i, [](double v) { return v * (180.0 / std::numbers::pi); });
        case Operation::radians_real:
            return f.real_function(i, [](double v) { return v * (std::numbers::pi / 180.0); });
        case Operation::rint_real:
            return f.real_function(i, [](double v) { return std::nearbyint(v); });
        case Operation::log1p_real:
            return f.map_one<double, double>(i, [](double v) { return v > -1 ? std::log1p(v) : NULL_REAL; });
        case Operation::atan2_real:
            return f.map<double, double>(i, [](double y, double x) { return std::atan2(y, x); });
        case Operation::exp_real:
            return f.map_one<double, double>(i, [](double value) { return std::exp(value); });
        case Operation::ln_real:
            return f.map_one<double, double>(i, [](double v) { return v > 0 ? std::log(v) : NULL_REAL; });
        case Operation::log10_real:
            return f.map_one<double, double>(i, [](double v) { return v > 0 ? std::log10(v) : NULL_REAL; });
        case Operation::log2_real:
            return f.map_one<double, double>(i, [](double v) { return v > 0 ? std::log2(v) : NULL_REAL; });
        case Operation::sign_real:
            return f.map_one<double, double>(i, [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; });
        case Operation::power_real:
            return f.try_map<double>(i, PowerReal());
        default:
            throw std::logic_error("an instruction is not executed");
    }
}

}  // namespace ivme
