# Draw a measure over a swept key, a line for each variant, with the spread over seeds.
#
#   gfabric run scenarios/irn/tab4.2-load.yaml --seed 1,2,3
#   Rscript examples/notebook/figure.R results/tab4.2-load load slowdown_p99 figure.svg
library(ggplot2)

args <- commandArgs(trailingOnly = TRUE)
if (length(args) != 4) stop("usage: Rscript figure.R RESULTS KEY MEASURE PICTURE")
values <- read.csv(file.path(args[1], "values.csv"), check.names = FALSE, colClasses = "character")
col <- function(name) values[[name]]
values <- values[col("measure") == args[3], ]
if (nrow(values) == 0) stop(paste(args[1], "has no", args[3]))
points <- data.frame(
  x = factor(values[[args[2]]], levels = unique(values[[args[2]]])),
  variant = col("variant"), value = as.numeric(col("value"))
)
unit <- col("unit")[1]
figure <- ggplot(points, aes(x, value, colour = variant, group = variant)) +
  stat_summary(fun = mean, geom = "line") +
  stat_summary(fun = mean, fun.min = min, fun.max = max, geom = "pointrange") +
  labs(x = args[2], y = if (unit == "") args[3] else paste0(args[3], " (", unit, ")"))
svg(args[4], width = 4.5, height = 3)
print(figure)
invisible(dev.off())
