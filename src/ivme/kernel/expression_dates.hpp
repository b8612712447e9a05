// Dates as days and timestamps as microseconds since 1970-01-01, in the Gregorian calendar of all years.
#pragma once

#include <algorithm>
#include <cstdint>

#include "expression_value.hpp"

namespace ivme {

inline constexpr int64_t DAY_MICROSECONDS = 86'400'000'000;

inline int64_t floored_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

struct Civil {
    int64_t year, month, day;
};

// The date of a day counted from 1970-01-01, in the Gregorian calendar of all years (Hinnant's algorithm: years begin
// in March, so that a leap day is the last of one; 146,097 days are 400 years).
inline Civil civil_of_days(int64_t days) {
    days += 719468;
    int64_t era = floored_quotient(days, 146097);
    int64_t of_era = days - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * of_year + 2) / 153;
    int64_t day = of_year - (153 * month + 2) / 5 + 1;
    month += month < 10 ? 3 : -9;
    return {year_of_era + era * 400 + (month <= 2), month, day};
}

// The day of a date, counted from 1970-01-01: the inverse of `civil_of_days`.
inline int64_t days_of_civil(Civil date) {
    int64_t year = date.year - (date.month <= 2);
    int64_t era = floored_quotient(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719468;
}

// From 0 on Mondays to 6 on Sundays; 1970-01-01 was a Thursday.
inline int64_t weekday_of_days(int64_t days) { return days + 3 - floored_quotient(days + 3, 7) * 7; }

inline int64_t first_of_year(int64_t year) { return days_of_civil({year, 1, 1}); }

inline int64_t day_of_year(int64_t days) { return days - first_of_year(civil_of_days(days).year) + 1; }

struct IsoWeek {
    int64_t year, week;
};

// The week of a day, which begins on Monday and is the year's that its Thursday is in.
inline IsoWeek iso_week_of_days(int64_t days) {
    int64_t thursday = days - weekday_of_days(days) + 3;
    int64_t year = civil_of_days(thursday).year;
    return {year, (thursday - first_of_year(year)) / 7 + 1};
}

inline Civil plus_months(Civil date, int64_t months) {
    int64_t total = date.year * 12 + date.month - 1 + months;
    int64_t year = floored_quotient(total, 12);
    return {year, total - year * 12 + 1, date.day};
}

inline int64_t last_day_of_month(int64_t days) {
    Civil date = civil_of_days(days);
    return days_of_civil(plus_months({date.year, date.month, 1}, 1)) - 1;
}

// The first day of the year (12), quarter (3) or month (1) that a day is in.
inline int64_t start_of_months(int64_t days, int64_t months) {
    Civil date = civil_of_days(days);
    return days_of_civil({date.year, (date.month - 1) / months * months + 1, 1});
}

// The days of the years 1 to 9999, which are those that columns hold.
inline constexpr int64_t FIRST_DAY = -719162;
inline constexpr int64_t LAST_DAY = 2932896;

inline bool is_day(int64_t days) { return days >= FIRST_DAY && days <= LAST_DAY; }

inline bool is_moment(int64_t micros) {
    return micros >= FIRST_DAY * DAY_MICROSECONDS && micros < (LAST_DAY + 1) * DAY_MICROSECONDS;
}

struct AddDays {
    bool operator()(int64_t days, int64_t count, int64_t* to) const {
        return !add_overflows(days, count, to) && is_day(*to);
    }
};

// So many months later, on the same day of the month or else on the last one.
struct AddMonths {
    bool operator()(int64_t days, int64_t count, int64_t* to) const {
        constexpr int64_t most = 12 * 20000;
        if (count > most || count < -most) return false;
        Civil date = civil_of_days(days);
        Civil moved = plus_months({date.year, date.month, 1}, count);
        int64_t first = days_of_civil(moved);
        *to = std::min(first + date.day - 1, last_day_of_month(first));
        return is_day(*to);
    }
};

struct AddMicros {
    bool operator()(int64_t micros, int64_t count, int64_t* to) const {
        return !add_overflows(micros, count, to) && is_moment(*to);
    }
};

struct AddMonthsToMicros {
    bool operator()(int64_t micros, int64_t count, int64_t* to) const {
        int64_t days = floored_quotient(micros, DAY_MICROSECONDS);
        if (!AddMonths()(days, count, to)) return false;
        *to = *to * DAY_MICROSECONDS + (micros - days * DAY_MICROSECONDS);
        return true;
    }
};

// The whole months from one moment to another.
struct MonthsApart {
    bool operator()(int64_t start, int64_t end, int64_t* to) const {
        int64_t first = floored_quotient(start, DAY_MICROSECONDS), last = floored_quotient(end, DAY_MICROSECONDS);
        Civil from = civil_of_days(first), until = civil_of_days(last);
        int64_t months = (until.year - from.year) * 12 + until.month - from.month;
        int64_t rest = (until.day - from.day) * DAY_MICROSECONDS + (end - last * DAY_MICROSECONDS) -
                       (start - first * DAY_MICROSECONDS);
        *to = months - (months > 0 && rest < 0) + (months < 0 && rest > 0);
        return true;
    }
};

// The largest multiple of a unit that is no later than a moment, and how much later the moment is.
struct FloorTo {
    bool operator()(int64_t moment, int64_t unit, int64_t* to) const {
        *to = floored_quotient(moment, unit) * unit;
        return true;
    }
};
struct FloorModulo {
    bool operator()(int64_t moment, int64_t unit, int64_t* to) const {
        *to = moment - floored_quotient(moment, unit) * unit;
        return true;
    }
};

}  // namespace ivme
