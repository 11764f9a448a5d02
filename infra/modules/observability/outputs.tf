output "alarm_names" {
  description = "The alarms by what they are about."
  value       = { for name, alarm in aws_cloudwatch_metric_alarm.this : name => alarm.alarm_name }
}

output "dashboard" {
  description = "The dashboard's name."
  value       = aws_cloudwatch_dashboard.this.dashboard_name
}
