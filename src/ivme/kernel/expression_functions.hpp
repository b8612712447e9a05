// The operations of an expression that are functions of dates, of bits and of floats.
#pragma once

#include "expression_frame.hpp"

namespace ivme {

// Runs an instruction; throws for one of another kind.
void execute_function(const Instruction& i, ExpressionFrame& f);

}  // namespace ivme
